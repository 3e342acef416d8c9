package recipes

import (
	"errors"

	"github.com/docent-zk/docent/recipes/internal/ownership"
)

var (
	// ErrNotAcquired means that an acquire ended behind other holders or waiters. The text says what is
	// in the way, as far as the acquire knows it: the path of a node ahead, of the holder or of a
	// waiter, or how many permits are taken. Package inspect shows the client of a node. Where a
	// context or the time of AcquireWithin ended the wait, the error also matches the context's error.
	// If the client was not connected then, it matches framework.ErrNotConnected, and not
	// ErrNotAcquired. Curator: acquire(time, unit) returned false.
	ErrNotAcquired = errors.New("recipes: not acquired")
	// ErrNotHeld means that a hold was released before, or is a zero value, or that there is no hold
	// to upgrade: see rwlock.RWLock.TryUpgrade. Curator: IllegalMonitorStateException.
	ErrNotHeld = ownership.ErrNotHeld
	// ErrReleasePending means that a hold has ended by Release, and that the deletion of its node
	// is not confirmed yet. The error of a failed acquire of several locks can match it, too, and
	// ErrNotAcquired with it: check ErrNotAcquired first.
	ErrReleasePending = ownership.ErrReleasePending
	// ErrNodeDeleted means that another client has deleted the lock node, which ended the hold.
	ErrNodeDeleted = ownership.ErrNodeDeleted
	// ErrForeignLost means that a hold has lost its lock of another service: see HoldForeign.
	ErrForeignLost = ownership.ErrForeignLost
	// ErrUnsupported means that a hold has only locks of other services, which cannot guard a
	// transaction of ZooKeeper: see Hold.Guard and HoldForeign.
	ErrUnsupported = ownership.ErrUnsupported
	// ErrManySessions means that a transaction cannot cover all locks of a hold, because they were
	// acquired through several clients, or through several namespaces of one client.
	ErrManySessions = ownership.ErrManySessions
)
