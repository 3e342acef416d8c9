package recipes

import "errors"

var (
	// ErrNotAcquired means that the wait for a lock ended because others were ahead, or had the permits. Where a context ended it, the
	// error also matches the context's error. Curator: acquire(time, unit) returned false.
	ErrNotAcquired = errors.New("recipes: not acquired")
	// ErrNotHeld means that a hold was released before, or never was one. Curator: IllegalMonitorStateException.
	ErrNotHeld = errors.New("recipes: not held")
	// ErrReleasePending means that a hold is over by Release, and that it is not confirmed yet that its node is gone.
	ErrReleasePending = errors.New("recipes: released, deletion of the node not confirmed")
	// ErrNodeDeleted means that somebody else deleted the lock node, and with it ended the hold.
	ErrNodeDeleted = errors.New("recipes: lock node deleted by somebody else")
	// ErrForeignLost means that the lock of another service, which was a part of a hold, is not ours any more: see multilock.Foreign.
	ErrForeignLost = errors.New("recipes: lock of another service lost")
	// ErrManySessions means that a transaction cannot cover all locks of a hold, because they were acquired through several clients,
	// or through several namespaces of one.
	ErrManySessions = errors.New("recipes: the locks belong to several sessions or namespaces")
)
