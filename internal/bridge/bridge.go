// Package bridge has what the recipes need of a client and programs do not.
package bridge

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/hooks"
	"github.com/docent-zk/docent/retry"
)

// Client is what recipes need of a client.
type Client interface {
	// Validate returns an error if the client is nil, a zero value, or a view of a namespace that is no path.
	Validate() error
	// Key returns a comparable key for path. All views of a client return the same key for a node.
	Key(path string) any
	// Go calls fn in a new goroutine, and reports whether it does: not if the client is closed. Close waits for fn, which
	// should return when Done is closed.
	Go(fn func()) bool
	// Metrics receives measurements. It is never nil.
	Metrics() metrics.Metrics
	// RetryPolicy is the client's, for what an operation would not repeat by itself.
	RetryPolicy() retry.Policy
	// WaitWarning is the limit of framework.WithWaitWarning.
	WaitWarning() time.Duration
}

// Of returns what recipes need of c, which may be nil.
func Of(c *framework.Client) Client { return hooks.Client(c).(Client) }

// Session is what recipes need of a session.
type Session interface {
	// Key is Client.Key.
	Key(path string) any
	// Go calls fn in a new goroutine, and reports whether it does: not if the session has ended. fn must return soon after the
	// session has ended: it is waited for before the servers are asked to end the session, and by Client.Close.
	Go(fn func()) bool
	// Metrics is Client.Metrics.
	Metrics() metrics.Metrics
	// DeleteLater is framework.Session.DeleteGuaranteed that does not wait. Failures are logged.
	DeleteLater(paths ...string)
	// Lifetime is that of a hold that begins now.
	Lifetime() Lifetime
	// Together calls fn, which must not wait for anything. What it asks for by StartChildren and StartGetW leaves in one piece,
	// in that order.
	Together(fn func())
	// StartChildren is framework.Session.Children that does not wait. Where there is a connection the request has been handed to
	// it when StartChildren returns; otherwise it waits for one in the background. It is not repeated. done is called once,
	// perhaps before StartChildren returns, or by the goroutine that reads the connection: it must not wait for anything.
	StartChildren(path string, done func(children []string, err error))
	// StartGetW is framework.Session.GetW as StartChildren is Children.
	StartGetW(path string, done func(data []byte, stat *zk.Stat, w *framework.Watch, err error))
}

// OfSession returns what recipes need of s, which may be nil.
func OfSession(s *framework.Session) Session { return hooks.Session(s).(Session) }

// Lifetime bounds a hold: it ends with the session or, under the Strict policy, with the current connection.
type Lifetime = hooks.Lifetime

// EndListener is told that a Lifetime has ended.
type EndListener = hooks.EndListener

// Watch is what recipes need of a watch.
type Watch interface {
	// Then calls fn when the watch fires, at once if it has fired. fn is called by the goroutine that reads the connection: it
	// must not wait for anything, nor use the client. Session.Go is for that.
	Then(fn func())
	// Unbroken reports whether the watch is still set and the session has not reconnected since: what it watches has not changed
	// as of any answer that has come. After a reconnect the servers tell of changes later than that.
	Unbroken() bool
}

// OfWatch returns what recipes need of w.
func OfWatch(w *framework.Watch) Watch { return hooks.Watch(w).(Watch) }

// Behind returns an option that calls fn each time that the request to create the node, alone or in a transaction, has been handed to
// the connection. What fn asks for by StartChildren and StartGetW in the same session comes behind that request: it is answered as of
// after the create, if the create succeeds. If the answer to the create is lost, or the create is repeated, that tells nothing of
// what was asked for behind an earlier request. fn must not wait for anything.
func Behind(fn func()) framework.CreateOption { return hooks.Behind(fn).(framework.CreateOption) }
