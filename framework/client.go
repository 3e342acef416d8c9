package framework

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/docent-zk/docent/framework/internal/connstr"
	"github.com/docent-zk/docent/internal/signal"
)

// Client is a managed connection to a ZooKeeper ensemble. It keeps a session, opens another one
// when it is lost, and repeats operations by its retry policy. It is safe for concurrent use; a
// process needs one for each ensemble. Curator: CuratorFramework.
type Client struct {
	ops
	closeOnce func() // nil in a view
}

// New returns a client, which connects in the background. New does no I/O: if no server can be
// reached, operations fail, and WaitConnected waits for one. The connection string is
// "host:port,[::1]:port/chroot"; a missing port is 2181. Names are resolved at each attempt to
// connect. The error names the wrong part of the connection string, or the wrong option.
//
// The caller must Close the client. Curator: CuratorFrameworkFactory.newClient and start.
func New(connect string, opts ...Option) (*Client, error) {
	spec, err := connstr.Parse(connect)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	core := newCore(spec, cfg)
	go core.run() // Close stops it and waits for it
	return &Client{
		ops:       ops{core: core, root: spec.Chroot + cfg.namespace, namespace: cfg.namespace},
		closeOnce: onceOnly(core.close),
	}, nil
}

// onceOnly returns a function that calls fn the first time. All calls return after fn has. In virtual time the clock
// goes on while calls wait, which is not so with sync.OnceFunc.
func onceOnly(fn func()) func() {
	var called, returned atomic.Bool
	done := make(chan struct{})
	return func() {
		switch {
		case called.CompareAndSwap(false, true):
			defer close(done)
			defer returned.Store(true)
			fn()
		case !returned.Load(): // a bubble of testing/synctest may have ended, and its channels with it
			<-done
		}
	}
}

// WaitConnected waits until there is a session with a connection. It fails when ctx ends; the error
// then includes the last error of each server. It fails with ErrClosed when the client is closed,
// and with ErrAuthFailed when the servers refuse a credential. Curator: blockUntilConnected.
func (c *Client) WaitConnected(ctx context.Context) error {
	err := c.checkUsable(ctx)
	if err == nil {
		err = c.core.waitConnected(ctx)
	}
	if err != nil {
		return &Error{Op: "connect", Outcome: NotApplied, Err: err}
	}
	return nil
}

// Outlast reports whether a loop that follows something should make an operation of the client, or of
// its session, again after it has failed with err. It waits until there is a session with a
// connection. So such a loop lasts through outages and lost sessions:
//
//	for {
//		data, _, watch, err := client.GetW(ctx, path)
//		if client.Outlast(ctx, err) {
//			continue // with the next session, if it used one
//		}
//		...
//	}
//
// It returns true if err is transient, see IsTransient, or comes from a lost session, and the client
// has connected. It returns false for nil, for all other errors, and if ctx ends, the client is
// closed or the servers refuse a credential before there is a connection. It does not say what became
// of the operation: see OutcomeOf.
func (c *Client) Outlast(ctx context.Context, err error) bool {
	passing := c.core != nil && (IsTransient(err) || errors.Is(err, ErrSessionLost))
	return passing && c.WaitConnected(ctx) == nil
}

// Close ends all holds and the session, and with it every ephemeral node of the client. Then it
// waits until the client's goroutines have returned. Without a connection it tries for one connect
// timeout to get one, so that the servers end the session too. If that fails, the servers end the
// session after the session timeout. Close waits at most one second for a listener that does not
// return. Operations in progress fail with ErrClosed.
//
// Close returns nil, also if the servers have not confirmed the end of the session. A second Close
// waits for the first one. Close of a zero Client, and of a view that Namespace returned, is an
// error and closes nothing.
func (c *Client) Close() error {
	switch {
	case c.core == nil:
		return fmt.Errorf("close: %w: framework.Client", ErrZeroValue)
	case c.closeOnce == nil:
		return fmt.Errorf("close of the view of namespace %q: close the client it was made from",
			c.namespace)
	}
	c.closeOnce()
	return nil
}

// SetServers replaces the servers of the connection string by others of the same ensemble. The
// client keeps its session: if its server is not among the new ones, it connects to one of them.
// (Another ensemble does not know the session, so the session is lost.) The namespace and the
// chroot stay: the new string must end in the same chroot. If SetServers returns an error, nothing
// has changed; the error names what is wrong. On a view it changes the client of the view. Curator:
// ZooKeeper.updateServerList, by an EnsembleProvider.
func (c *Client) SetServers(connect string) error {
	if err := c.checkUsable(context.Background()); err != nil {
		return err
	}
	spec, err := connstr.Parse(connect)
	switch {
	case err != nil:
		return fmt.Errorf("set servers: %w", err)
	case spec.Chroot != c.core.chroot:
		return fmt.Errorf("set servers: connection string %q: chroot %q is not the client's, which is %q",
			connect, spec.Chroot, c.core.chroot)
	case c.core.ctx.Err() != nil:
		return ErrClosed
	}
	c.core.setServers(spec.Servers)
	return nil
}

// Server returns the server that the client is connected to, "host:port" as the connection string
// names it, or "" without a connection. A name that stands for several servers does not tell which of
// them it is. Server is for logs and for operators: the client may already be connected to another
// server, or to none, when it returns. Curator has no counterpart.
func (c *Client) Server() string {
	if c.core == nil {
		return ""
	}
	return c.core.server()
}

// State returns the last known state of the connection, and Closed for a zero Client. Curator: the last argument of
// ConnectionStateListener.stateChanged.
func (c *Client) State() State {
	if c.core == nil {
		return Closed
	}
	return c.core.states.get()
}

// Listen calls fn for each later change of state, in order, one at a time, in a goroutine of its
// own. A slow fn delays nothing else and misses no change. The first Connected may come before Listen
// is called, because New begins to connect: State reports it. After stop no further call begins; stop
// does not wait for a call in progress. Listen panics if fn is nil. Curator: ConnectionStateListener.
func (c *Client) Listen(fn func(StateChange)) (stop func()) {
	if fn == nil {
		panic("framework: Listen: nil function")
	}
	if c.core == nil {
		return func() {}
	}
	return c.core.states.Listen(fn)
}

// Session returns the current live session, which may have no connection at the moment. If there is
// none, it waits by the retry policy, as operations wait for a connection, until ctx ends. It fails
// with ErrNotConnected when the policy is exhausted, with ErrClosed, and with ErrAuthFailed.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	bound, err := c.bind(ctx, call{name: "session"})
	if err != nil {
		return nil, err
	}
	bound.ofSession = true
	return &Session{bound}, nil
}

// Done returns a channel that is closed when Close is called.
func (c *Client) Done() <-chan struct{} {
	if c.core == nil {
		return signal.Closed
	}
	return c.core.ctx.Done()
}

// Namespace returns a view of the client under /name, below the client's own namespace. The view
// has the same session and state. It cannot be closed. If /name is not a valid path, every
// operation of the view fails. Curator: usingNamespace.
func (c *Client) Namespace(name string) *Client {
	if c.core == nil {
		return &Client{}
	}
	view := c.ops
	ns, err := namespacePath(name)
	if err != nil && view.broken == nil {
		view.broken = err
	}
	view.root += ns
	view.namespace += ns
	return &Client{ops: view}
}
