package main

import (
	"fmt"
	"sync"

	"github.com/docent-zk/docent/fence"
)

// bank is what the locks protect. A transfer reads balances, calculates, and writes them. The bank
// itself only refuses late writes. In a real program, it is a database with the largest token as a
// column of each account.
type bank struct {
	mu       sync.Mutex
	accounts map[string]*account
}

type account struct {
	balance int
	fencing fence.Register // of the lock of this account; tokens of different locks cannot be compared
}

// entry is the new balance of an account, with the token of its lock.
type entry struct {
	account string
	balance int
	token   int64
}

func newBank() *bank {
	return &bank{accounts: map[string]*account{"A": {balance: 100}, "B": {balance: 100}}}
}

func (b *bank) balance(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts[name].balance
}

// write makes all entries. If any token is too old, it makes none and returns an error.
func (b *bank) write(entries ...entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		if err := b.accounts[e.account].fencing.Accept(e.token); err != nil {
			return fmt.Errorf("account %s: %w", e.account, err)
		}
	}
	for _, e := range entries {
		b.accounts[e.account].balance = e.balance
	}
	return nil
}
