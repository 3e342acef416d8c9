// Package contracttest is a test suite for the locks of this module, independent of their nodes. A
// recipe runs it on each of its locks:
//
//	var locks = contracttest.Kinds{"mutex": {New: newLock, Dirs: ownPath, Reenters: true}}
//
//	func TestContract(t *testing.T)          { locks.Run(t) }
//	func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
//
// The recipe's tests need the Main of package testzk.
package contracttest

import (
	"testing"

	"github.com/docent-zk/docent/framework"
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

// Kinds are the locks of a recipe, by name.
type Kinds map[string]Kind

// Run tests what the locks do on the servers of package testzk, in parallel with other tests.
func (ks Kinds) Run(t *testing.T) { ks.run(t, properties) }

// Simulate tests single requests, a fault at each of them, and time. It runs in virtual time on
// servers of its own, in parallel with other tests.
func (ks Kinds) Simulate(t *testing.T) { ks.run(t, simulated) }

func (ks Kinds) run(t *testing.T, all []property) {
	for name, k := range ks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.run(t, all)
		})
	}
}

func (k Kind) run(t *testing.T, all []property) {
	k = k.complete()
	k.shape = measure(t, k)
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
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
	name  string
	check func(*testing.T, Kind)
}

var properties = []property{
	{name: "end of the counter", check: endOfTheCounter},

	{name: "exclusion", check: exclusion},
	{name: "all permitted holders hold", check: permittedHolders},
	{name: "first come first served", check: firstComeFirstServed},
	{name: "waiters that leave grant nothing", check: leaversGrantNothing},
	{name: "some of many tries succeed", check: manyTries},
	{name: "foreign children are ignored", check: foreignChildren},

	{name: "acquire fails with a context that has ended", check: endedContextFails},
	{name: "nil context is an error", check: nilContext},
	{name: "the context of the acquire does not bound the hold", check: contextOfTheAcquire},
	{name: "deadline ends the wait", check: deadlineEndsTheWait},
	{name: "deadline ends the wait in an outage", check: deadlineInAnOutage},
	{name: "wait that an outage interrupts is not connected", check: outageDuringTheWait},
	{name: "close of the client ends waits and holds", check: closeOfTheClient},

	{name: "session expires in the wait", check: expiryInTheWait},
	{name: "session expires in the hold", check: expiryInTheHold},
	{name: "silent holder loses its hold before the next one begins", check: silentHolder},
	{name: "a node of a former session grants nothing", check: formerSession},
	{name: "a waiter keeps its node in an outage", check: outageInTheWait},
	{name: "hand-over in an outage is not missed", check: handOverInAnOutage},

	{name: "node deleted in the wait", check: nodeDeletedInTheWait},
	{name: "node deleted with its predecessor", check: nodeDeletedWithPredecessor},
	{name: "node deleted in the hold", check: nodeDeletedInTheHold},
	{name: "tree deleted in wait and hold", check: treeDeleted},

	{name: "re-entry", check: reentry},
	{name: "tokens grow", check: tokensGrow},
	{name: "releases", check: releases},
	{name: "release while disconnected", check: releaseWhileDisconnected},
}

var simulated = []property{
	{name: "try of a busy lock leaves no trace", check: tryLeavesNoTrace},
	{name: "caller cancels at any step", check: callerCancels},
	{name: "trouble at any step of an acquire", check: troubleWhileAcquiring},
	{name: "trouble at any step of a release", check: troubleWhileReleasing},
	{name: "code of the program ends an acquire", check: codeEndsAcquire},
	{name: "node deleted while disconnected", check: nodeDeletedWhileDisconnected},
	{name: "release is finished later", check: releaseIsFinishedLater},
}
