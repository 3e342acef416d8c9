// Package locktest is the contract of a lock: what every lock of this module does, whatever nodes it is made of. A recipe runs it on
// each of its locks:
//
//	func TestContract(t *testing.T) {
//		locktest.Run(t, locktest.Kind{New: newLock, Lines: ownPath, Reenters: true})
//	}
//
// What depends on single requests, faults at each of them and the clock runs in virtual time, on servers of its own, and is skipped
// where real ones are wanted, for they change nothing about it; all else runs on those of package testzk, whose Main the recipe's tests
// need.
package locktest

import (
	"context"
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Lock is what is tested.
type Lock interface {
	Acquire(ctx context.Context) (*recipes.Hold, error)
	TryAcquire(ctx context.Context) (*recipes.Hold, error)
}

// Kind describes a lock to the suite.
type Kind struct {
	// New makes a lock value on path of a client. All such values of one client, and of several, are the same lock.
	New func(t testing.TB, c *framework.Client, path string) Lock
	// Rival makes a lock that excludes New's, and those of its own kind: for the read side of a lock the write side, and the other way
	// round it need not be given. Nil means that New's exclude each other. With a Rival any number of New's may hold at once.
	Rival func(t testing.TB, c *framework.Client, path string) Lock
	// Lines are the nodes whose children are the lock's own nodes: path or below it. Nil means path itself.
	Lines func(path string) []string
	// Counted are those of the Lines in which waiters stand, where the sequence numbers matter. Nil means all.
	Counted func(path string) []string
	// Holders is how many may hold at once; 0 means one. It has no meaning with a Rival.
	Holders int
	// Reenters says that an acquire under the context of a hold returns another level of it. Other locks queue then.
	Reenters bool

	shape shape
}

// Run tests a lock, property by property, along with other parallel tests.
func Run(t *testing.T, k Kind) {
	t.Parallel()
	k = k.complete()
	k.shape = measure(t, k)
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			if p.virtual && testzk.InProcess() == nil {
				t.Skip("has servers of its own, in virtual time")
			}
			t.Parallel()
			p.check(t, k)
		})
	}
}

// complete puts in what was left out.
func (k Kind) complete() Kind {
	if k.Lines == nil {
		k.Lines = func(path string) []string { return []string{path} }
	}
	if k.Counted == nil {
		k.Counted = k.Lines
	}
	k.Holders = max(k.Holders, 1)
	return k
}

// shared says that locks made by New do not exclude each other one by one.
func (k Kind) shared() bool { return k.Rival != nil || k.Holders > 1 }

// other makes a lock that excludes one of New's, where the lock has no more room than that.
func (k Kind) other(t testing.TB, c *framework.Client, path string) Lock {
	if k.Rival != nil {
		return k.Rival(t, c, path)
	}
	return k.New(t, c, path)
}

// property is one part of the contract.
type property struct {
	name    string
	virtual bool // it runs in virtual time, on servers of its own
	check   func(*testing.T, Kind)
}

var properties = []property{
	{name: "end of the counter", check: endOfTheCounter},

	{name: "exclusion", check: exclusion},
	{name: "as many as may hold do", check: asManyAsMayHoldDo},
	{name: "first come first served", check: firstComeFirstServed},
	{name: "those who leave let nobody in", check: leaversLetNobodyIn},
	{name: "of many tries some win", check: manyTries},
	{name: "try of a busy lock leaves no trace", virtual: true, check: tryLeavesNoTrace},
	{name: "foreign children are ignored", check: foreignChildren},

	{name: "context that has ended loses", check: endedContextLoses},
	{name: "no context is an error", check: noContext},
	{name: "the acquires context is not the holds", check: contextOfTheAcquire},
	{name: "deadline ends the wait", check: deadlineEndsTheWait},
	{name: "deadline is kept in an outage", check: deadlineInAnOutage},
	{name: "close of the client ends waits and holds", check: closeOfTheClient},

	{name: "caller leaves at any step", virtual: true, check: callerLeaves},
	{name: "trouble at any step of an acquire", virtual: true, check: troubleWhileAcquiring},
	{name: "trouble at any step of a release", virtual: true, check: troubleWhileReleasing},

	{name: "code of the program ends an acquire", virtual: true, check: codeEndsAcquire},

	{name: "session expires in the wait", check: expiryInTheWait},
	{name: "session expires in the hold", check: expiryInTheHold},
	{name: "silent holder ends before the next gets in", check: silentHolder},
	{name: "nobody is granted on a node of a former session", check: formerSession},
	{name: "outage costs a waiter nothing", check: outageInTheWait},
	{name: "hand-over in an outage is not missed", check: handOverInAnOutage},

	{name: "node deleted in the wait", check: nodeDeletedInTheWait},
	{name: "node deleted while away", virtual: true, check: nodeDeletedWhileAway},
	{name: "node deleted with the one ahead", check: nodeDeletedWithTheOneAhead},
	{name: "node deleted in the hold", check: nodeDeletedInTheHold},
	{name: "tree deleted in wait and hold", check: treeDeleted},

	{name: "re-entry", check: reentry},
	{name: "tokens grow", check: tokensGrow},
	{name: "releases", check: releases},
	{name: "release while cut off", check: releaseWhileCutOff},
	{name: "release is finished later", virtual: true, check: releaseIsFinishedLater},
}
