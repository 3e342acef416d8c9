// Package bridge gives recipes access to parts of a client that programs do not need.
package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/retry"
)

// Client has the methods of a client that only recipes use.
type Client interface {
	// Validate returns an error if the client is nil, a zero value, or a view with an invalid
	// namespace.
	Validate() error
	// Key returns a comparable key for path. All views of a client return the same key for a node.
	Key(path string) any
	// Go calls fn in a new goroutine and reports whether it did. It does not if the client is
	// closed. Close waits for fn, which should return when Done is closed.
	Go(fn func()) bool
	// Watch is framework.Client.AddWatch with another goroutine: fn is called by the one that reads
	// the connection, before that handles what the server has sent behind the event. A lock is held,
	// so fn must not wait or use the client. A call of fn may begin after the watch was stopped. The
	// first call is with zk.EventNotWatching, when a server has set the watch. If the client had set the
	// same one already, that is a call by the goroutine that calls Watch.
	Watch(ctx context.Context, path string, mode framework.WatchMode,
		fn func(framework.WatchEvent)) (*framework.PersistentWatch, error)
	// Room returns how many bytes of data may be added to a transaction of ops until Multi refuses it
	// with framework.ErrTooLarge. It makes no request. It returns an error if Multi refuses ops.
	Room(ops ...framework.Op) (int, error)
	// Disconnected returns why there is no connection, or nil if there is one: framework.ErrNotConnected
	// with the last error of each server, framework.ErrAuthFailed or framework.ErrClosed.
	Disconnected() error
	// Metrics returns the receiver of measurements. It is never nil.
	Metrics() metrics.Metrics
	// AddHeld adds n to the locks that are held now, for metrics.LocksHeld. It calls no code of the
	// program and does not wait.
	AddHeld(n int64, l metrics.Labels)
	// RetryPolicy returns the client's policy, for what an operation does not repeat by itself.
	RetryPolicy() retry.Policy
	// WaitWarning returns the limit of framework.WithWaitWarning.
	WaitWarning() time.Duration
	// Locals returns what Local keeps for the client. All views of a client share it.
	Locals() *sync.Map
}

// Of returns the Client of c, which may be nil.
func Of(c *framework.Client) Client { return hooks.Client(c).(Client) }

// Session has the methods of a session that only recipes use.
type Session interface {
	// Key is Client.Key.
	Key(path string) any
	// Go calls fn in a new goroutine and reports whether it did. It does not if the session has
	// ended. fn must return soon after the end of the session. The servers are asked to close the
	// session only after fn has returned. Client.Close waits for fn too.
	Go(fn func()) bool
	// LongestTimeout returns the longest timeout that the servers have granted the session. They may keep
	// it for that long.
	LongestTimeout() time.Duration
	// Metrics is Client.Metrics.
	Metrics() metrics.Metrics
	// AddHeld is Client.AddHeld.
	AddHeld(n int64, l metrics.Labels)
	// DeleteLater is framework.Session.DeleteGuaranteed without a wait. Failures are logged.
	DeleteLater(paths ...string)
	// Lifetime returns the lifetime of a hold that begins now.
	Lifetime() Lifetime
	// Together calls fn, which must not wait. The requests that fn makes with StartChildren and
	// StartGetW are written to the connection together, in that order.
	Together(fn func())
	// StartChildren is framework.Session.Children without a wait. If there is a connection, the
	// request has been handed to it when StartChildren returns; otherwise the request waits for a
	// connection in the background. It is not repeated. done is called once, perhaps before
	// StartChildren returns, or by the goroutine that reads the connection. It must not wait.
	StartChildren(path string, done func(children []string, err error))
	// StartGetW is framework.Session.GetW without a wait, in the same way.
	StartGetW(path string, done func(data []byte, stat *zk.Stat, w *framework.Watch, err error))
	// StartRead reads a node or its children without a wait, in the same way, with a watch or
	// without. It is no error of a ReadStat that the node does not exist: stat is nil then. w is nil
	// without watch, and where err is not nil.
	StartRead(path string, kind ReadKind, watch bool,
		done func(data []byte, children []string, stat *zk.Stat, w *framework.Watch, err error))
	// StartMultiRead is framework.Session.MultiRead without a wait, in the same way.
	StartMultiRead(reads []framework.ReadOp, done func([]framework.ReadResult, error))
	// Locals returns what Local keeps for the session.
	Locals() *sync.Map
}

// ReadKind is what StartRead reads.
type ReadKind = hooks.ReadKind

// MaxEnsures is how often a recipe creates a missing directory again before a missing node is an error,
// as package framework does with missing parents.
const MaxEnsures = hooks.MaxEnsures

// MaxTTL is the servers' limit of a time to live.
const MaxTTL = hooks.MaxTTL

// The kinds of reads.
const (
	ReadData     = hooks.ReadData     // as framework.Session.Get
	ReadStat     = hooks.ReadStat     // as framework.Session.Exists
	ReadChildren = hooks.ReadChildren // as framework.Session.Children
)

// OfSession returns the Session of s, which may be nil.
func OfSession(s *framework.Session) Session { return hooks.Session(s).(Session) }

// Local returns the T that is kept for a Client or a Session, and is freed with it. It begins as
// the zero value. T should be a type that one package declares and does not export: that package
// alone then uses the value.
func Local[T any](owner interface{ Locals() *sync.Map }) *T {
	all, key := owner.Locals(), any((*T)(nil))
	if kept, ok := all.Load(key); ok {
		return kept.(*T)
	}
	kept, _ := all.LoadOrStore(key, new(T))
	return kept.(*T)
}

// Lifetime bounds a hold: it ends with the session or, under the Strict policy, with the current
// connection.
type Lifetime = hooks.Lifetime

// EndListener is notified when a Lifetime has ended.
type EndListener = hooks.EndListener

// Watch has the methods of a watch that only recipes use.
type Watch interface {
	// Then calls fn when the watch fires, or at once if it has already fired. fn is called by the
	// goroutine that reads the connection. It must not wait or use the client; use Session.Go for
	// that. After stop fn is not called, unless the call has begun. A watch that many share may never
	// fire, and keeps fn until then: a caller that ends earlier calls stop.
	Then(fn func()) (stop func())
	// Drop says that one read does not need the watch any more. Each read that has returned it may
	// drop it once. When all have, the client forgets the watch: it does not fire, and is not set
	// again on the next connection. On the current connection the servers keep it until it fires.
	Drop()
	// Unbroken reports whether the watch is still set and the session has not reconnected since. If
	// so, the watched data or children have not changed as of any answer so far. After a reconnect
	// the servers report changes later than that.
	Unbroken() bool
}

// OfWatch returns the Watch of w.
func OfWatch(w *framework.Watch) Watch { return hooks.Watch(w).(Watch) }

// Behind returns an option that calls fn each time that the request to create the node, alone or in
// a transaction, has been handed to the connection. Requests that fn makes in the same session with
// StartChildren and StartGetW come behind that request. If the create succeeds, their answers show
// the state after it. If the answer to the create is lost, or the create is repeated, the result
// says nothing about what was requested behind an earlier create. fn is not called for a transaction
// that also creates the parent of the node: the node is the first child then. fn must not wait.
func Behind(fn func()) framework.CreateOption { return hooks.Behind(fn).(framework.CreateOption) }

// HoldSession returns the session of a *recipes.Hold, or of the first of its nodes. It returns nil for
// the zero value.
func HoldSession(hold any) *framework.Session { return hooks.HoldSession(hold).(*framework.Session) }

// AroundRelease makes each Release of a *recipes.Hold call around, which must call release and return
// its error. Call it before the hold is shared, and once.
func AroundRelease(hold any, around func(release func() error) error) {
	hooks.AroundRelease(hold, around)
}

// Named returns an option that protects a create as framework.Protected does, and leaves the name as
// it is. The name must be new, and must not be used again: it must contain a GUID. Named is not for
// sequential nodes.
func Named() framework.CreateOption { return hooks.Named().(framework.CreateOption) }
