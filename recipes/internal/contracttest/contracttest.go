// Package contracttest is a test suite for the locks of this module, independent of their nodes. A
// recipe runs it on each of its locks:
//
//	func TestContract(t *testing.T) {
//		contracttest.Run(t, contracttest.Kind{New: newLock, Dirs: ownPath, Reenters: true})
//	}
//
// Tests of single requests, of a fault at each of them, and of time run in virtual time on servers
// of their own. They are skipped on real servers, because those change nothing about them. All
// other tests run on the servers of package testzk, and the recipe's tests need its Main.
package contracttest

import (
	"testing"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Lock is the lock under test.
type Lock = recipes.Locker

// Kind describes a lock to the suite.
type Kind struct {
	// New makes a value of the lock on path. All such values, of one client or of several, are the
	// same lock.
	New func(t testing.TB, c *framework.Client, path string) Lock
	// Rival makes a lock that excludes those of New and other rivals, such as the write side for a
	// read side. In the opposite direction it may be nil. Nil means that the locks of New exclude
	// each other. With a Rival, any number of New's locks may be held at once.
	Rival func(t testing.TB, c *framework.Client, path string) Lock
	// Dirs returns the directories that have the lock's nodes: path or nodes below it. Nil means
	// path itself.
	Dirs func(path string) []string
	// Counted returns those of Dirs in which waiters queue and sequence numbers matter. Nil means
	// all.
	Counted func(path string) []string
	// Holders is the largest number of holders at once; 0 means one. It is ignored with a Rival.
	Holders int
	// Reenters reports whether an acquire under the context of a hold re-enters it. Other locks
	// queue then.
	Reenters bool

	shape shape
}

// Run tests all properties of a lock, in parallel with other tests.
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

// complete returns k with the defaults of its fields.
func (k Kind) complete() Kind {
	if k.Dirs == nil {
		k.Dirs = func(path string) []string { return []string{path} }
	}
	if k.Counted == nil {
		k.Counted = k.Dirs
	}
	k.Holders = max(k.Holders, 1)
	return k
}

// shared reports whether two locks made by New can be held at once.
func (k Kind) shared() bool { return k.Rival != nil || k.Holders > 1 }

// other makes a lock that a single lock of New excludes, once no other permits are left.
func (k Kind) other(t testing.TB, c *framework.Client, path string) Lock {
	if k.Rival != nil {
		return k.Rival(t, c, path)
	}
	return k.New(t, c, path)
}

// property is one part of the contract.
type property struct {
	name    string
	virtual bool // it runs in virtual time on servers of its own
	check   func(*testing.T, Kind)
}

var properties = []property{
	{name: "end of the counter", check: endOfTheCounter},

	{name: "exclusion", check: exclusion},
	{name: "all permitted holders hold", check: permittedHolders},
	{name: "first come first served", check: firstComeFirstServed},
	{name: "waiters that leave grant nothing", check: leaversGrantNothing},
	{name: "some of many tries succeed", check: manyTries},
	{name: "try of a busy lock leaves no trace", virtual: true, check: tryLeavesNoTrace},
	{name: "foreign children are ignored", check: foreignChildren},

	{name: "acquire fails with a context that has ended", check: endedContextFails},
	{name: "nil context is an error", check: nilContext},
	{name: "the context of the acquire does not bound the hold", check: contextOfTheAcquire},
	{name: "deadline ends the wait", check: deadlineEndsTheWait},
	{name: "deadline ends the wait in an outage", check: deadlineInAnOutage},
	{name: "wait that an outage interrupts is not connected", check: outageDuringTheWait},
	{name: "close of the client ends waits and holds", check: closeOfTheClient},

	{name: "caller cancels at any step", virtual: true, check: callerCancels},
	{name: "trouble at any step of an acquire", virtual: true, check: troubleWhileAcquiring},
	{name: "trouble at any step of a release", virtual: true, check: troubleWhileReleasing},

	{name: "code of the program ends an acquire", virtual: true, check: codeEndsAcquire},

	{name: "session expires in the wait", check: expiryInTheWait},
	{name: "session expires in the hold", check: expiryInTheHold},
	{name: "silent holder loses its hold before the next one begins", check: silentHolder},
	{name: "a node of a former session grants nothing", check: formerSession},
	{name: "a waiter keeps its node in an outage", check: outageInTheWait},
	{name: "hand-over in an outage is not missed", check: handOverInAnOutage},

	{name: "node deleted in the wait", check: nodeDeletedInTheWait},
	{name: "node deleted while disconnected", virtual: true, check: nodeDeletedWhileDisconnected},
	{name: "node deleted with its predecessor", check: nodeDeletedWithPredecessor},
	{name: "node deleted in the hold", check: nodeDeletedInTheHold},
	{name: "tree deleted in wait and hold", check: treeDeleted},

	{name: "re-entry", check: reentry},
	{name: "tokens grow", check: tokensGrow},
	{name: "releases", check: releases},
	{name: "release while disconnected", check: releaseWhileDisconnected},
	{name: "release is finished later", virtual: true, check: releaseIsFinishedLater},
}
