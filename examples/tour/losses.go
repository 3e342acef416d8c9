package main

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// account is a resource that refuses late writes.
type account struct {
	fencing fence.Register
	balance int
}

func (a *account) write(token int64, balance int) error {
	return a.fencing.Do(token, func() error {
		a.balance = balance
		return nil
	})
}

// showLoss shows what a hold tells after the loss of its session, and what the token is for.
func showLoss(ctx context.Context, t *tour) error {
	ann, err := mutex.New(t.ann, "/tour/account")
	if err != nil {
		return err
	}
	bob, err := mutex.New(t.bob, "/tour/account")
	if err != nil {
		return err
	}
	old, err := t.hold(ctx, "Ann", "old := lock.Acquire(ctx)", ann)
	if err != nil {
		return err
	}
	if err := t.expireHolder(ctx, ann); err != nil {
		return err
	}
	<-old.Done()
	if err := t.refused("Ann", "<-old.Done(); old.Err()", old.Err(), framework.ErrSessionLost); err != nil {
		return err
	}
	hold, err := t.hold(ctx, "Bob", "hold := lock.Acquire(ctx)", bob)
	if err != nil {
		return err
	}
	if err := t.writeLate(old, hold); err != nil {
		return err
	}
	return t.release("Bob", "hold.Release()", hold)
}

// expireHolder ends the session of the holder on the server.
func (t *tour) expireHolder(ctx context.Context, lock *mutex.Mutex) error {
	list, err := lock.Participants(ctx)
	if err != nil {
		return err
	}
	session, ok := t.server.Session(list[0].Session)
	if !ok {
		return fmt.Errorf("the holder has no session: %v", list[0])
	}
	t.event("the server expires Ann's session, as after an outage")
	return session.Expire()
}

// writeLate has Ann, who has not looked, write after Bob.
func (t *tour) writeLate(old, hold *recipes.Hold) error {
	var a account
	if err := a.write(hold.Token(), 100); err != nil {
		return err
	}
	t.call("Bob", "account.write(hold.Token(), 100)", "written")
	err := a.write(old.Token(), 0)
	if err := t.refused("Ann", "account.write(old.Token(), 0)", err, fence.ErrStale); err != nil {
		return err
	}
	t.call("Bob", "account.balance", "%d", a.balance)
	return nil
}
