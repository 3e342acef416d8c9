// Package hooks lets package bridge use what package framework does not export. The packages
// framework and recipes set the variables when they are initialized.
package hooks

import (
	"context"
	"time"
)

// MaxEnsures is how often missing directories are created again before a missing node is an error. The
// servers delete empty containers. On busy machines, clients of servers that do so each 10 ms need more
// than 10.
const MaxEnsures = 100

// MaxTTL is the servers' limit of a time to live, 40 bits of milliseconds.
const MaxTTL = (1<<40 - 1) * time.Millisecond

var (
	// Client returns the bridge.Client of a *framework.Client.
	Client func(client any) any
	// Session returns the bridge.Session of a *framework.Session.
	Session func(session any) any
	// Watch returns the bridge.Watch of a *framework.Watch.
	Watch func(watch any) any
	// Behind returns the framework.CreateOption of bridge.Behind.
	Behind func(fn func()) any
	// HoldSession returns the *framework.Session of bridge.HoldSession. Package recipes sets it.
	HoldSession func(hold any) any
	// AroundRelease is bridge.AroundRelease. Package recipes sets it.
	AroundRelease func(hold any, around func(release func() error) error)
	// Named returns the framework.CreateOption of bridge.Named.
	Named func() any
)

// Lifetime bounds a hold: it ends with the session or, under the Strict policy, with the current
// connection.
type Lifetime interface {
	// Notify registers l. It reports false if the lifetime has already ended; then l is not called.
	Notify(l EndListener) bool
	// Stop undoes Notify. A call of l may be in progress.
	Stop(l EndListener)
	// Notifies reports whether a listener that matches is registered, for any lifetime of the session.
	// match must not wait.
	Notifies(match func(EndListener) bool) bool
	// Done returns a channel that is closed when the lifetime has ended. After a pause of the
	// process, Err may report the end earlier.
	Done() <-chan struct{}
	// Bound returns a context that ends with ctx, and no later than the lifetime. It is for
	// requests that only concern the hold: an operation of the session would wait for the next
	// connection. Call stop when the context is no longer used.
	Bound(ctx context.Context) (bound context.Context, stop func())
	// Err returns nil until the lifetime has ended. Then it returns the reason: an error of
	// framework.Session.Err, or framework.ErrSuspended.
	Err() error
}

// EndListener is notified when a Lifetime has ended.
type EndListener interface {
	// LifetimeEnded is called once, in a goroutine that the end of the session waits for. It must
	// not wait, because other listeners are called after it. Then the same goroutine calls cleanUp of
	// all listeners, unless it is nil, which must not wait either. After it a goroutine that the end of the
	// client waits for calls report of all, unless it is nil.
	LifetimeEnded() (cleanUp, report func())
}

// ReadKind is what bridge.Session.StartRead reads.
type ReadKind int

// The kinds of reads.
const (
	ReadData ReadKind = iota
	ReadStat
	ReadChildren
)
