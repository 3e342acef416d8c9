package framework

import (
	"context"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/framework/internal/connstr"
)

// Client is a managed connection to a ZooKeeper ensemble: it keeps a session, replaces it when it is lost, and repeats operations
// by its retry policy. Safe for concurrent use; one for each ensemble and process is enough. Curator: CuratorFramework.
type Client struct {
	ops
	closeOnce func() // nil in a view
}

// New makes a client and begins to connect. It does no I/O itself and returns at once: an unreachable server is an error of the
// operations, WaitConnected waits for one. The connection string is "host:port,[::1]:port/chroot", with 2181 where a port is
// missing; names are resolved at each attempt to connect. An error names the part of it, or the option, that is wrong.
//
// The caller must Close the client. Curator: CuratorFrameworkFactory.newClient and start.
func New(connect string, opts ...Option) (*Client, error) {
	spec, err := connstr.Parse(connect)
	if err != nil {
		return nil, fmt.Errorf("framework: %w", err)
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	core := newCore(spec, cfg)
	go core.run() // stopped and waited for by Close
	return &Client{
		ops:       ops{core: core, root: spec.Chroot + cfg.namespace, namespace: cfg.namespace},
		closeOnce: sync.OnceFunc(core.close),
	}, nil
}

// WaitConnected waits until there is a session with a connection. It fails when ctx ends, and then also tells what last went
// wrong with each server; with ErrClosed; with ErrAuthFailed. Curator: blockUntilConnected.
func (c *Client) WaitConnected(ctx context.Context) error {
	err := c.validate()
	if err == nil {
		err = c.usable(ctx)
	}
	if err == nil {
		err = c.core.waitConnected(ctx)
	}
	if err != nil {
		return &Error{Op: "connect", Outcome: NotApplied, Err: err}
	}
	return nil
}

// Close ends all holds and the session, and with them every ephemeral node of the client; then it waits until none of the
// client's goroutines run. Where there is no connection it tries for one connect timeout to get one, to end the session on the
// servers too; if that fails the servers end it after the session timeout. A listener that does not return is waited for one
// second. Operations under way fail with ErrClosed. Closing again is nil at once; closing a view made by Namespace is an error.
func (c *Client) Close() error {
	switch {
	case c == nil || c.core == nil:
		return fmt.Errorf("%w: Client", ErrZeroValue)
	case c.closeOnce == nil:
		return fmt.Errorf("framework: close of the view of namespace %q: close the client it was made from", c.namespace)
	}
	c.closeOnce()
	return nil
}

// SetServers replaces the servers of the connection string by others of the same ensemble, while the client runs and without
// losing the session: a connection to a server that is not among the new ones is left, and the session goes on at one of them.
// (Another ensemble does not know the session: it is lost.) The namespace and the chroot stay, so the new string must end in the
// same chroot. An error names what is wrong with it, and nothing has changed then. On a view it is as on the client that the
// view was made from. Curator: ZooKeeper.updateServerList, by an EnsembleProvider.
func (c *Client) SetServers(connect string) error {
	if err := c.validate(); err != nil {
		return err
	}
	spec, err := connstr.Parse(connect)
	switch {
	case err != nil:
		return fmt.Errorf("framework: %w", err)
	case spec.Chroot != c.core.chroot:
		return fmt.Errorf("framework: connection string %q: chroot %q is not the client's, which is %q", connect, spec.Chroot, c.core.chroot)
	case c.core.ctx.Err() != nil:
		return ErrClosed
	}
	c.core.setServers(spec.Servers)
	return nil
}

// State is what the client last knew of its connection. Curator: what ConnectionStateListener was last
// told.
func (c *Client) State() State {
	if c == nil || c.core == nil {
		return Closed
	}
	return c.core.states.get()
}

// Listen calls fn for each change of state from now on, in order, one at a time, on a goroutine of its own: a slow fn delays
// nobody and misses nothing. After stop no further call begins; stop does not wait for one that runs. Curator:
// ConnectionStateListener.
func (c *Client) Listen(fn func(StateChange)) (stop func()) {
	if c == nil || c.core == nil || fn == nil {
		return func() {}
	}
	return c.core.states.Listen(fn)
}

// Session returns the current live session, which may be without a connection at the moment. It waits for one as operations wait for
// a connection: by the retry policy, and until ctx ends. It fails with ErrNotConnected then, with ErrClosed and with ErrAuthFailed.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	if c == nil {
		return nil, &Error{Op: "session", Outcome: NotApplied, Err: c.validate()}
	}
	bound, err := c.bind(ctx, call{name: "session"})
	if err != nil {
		return nil, err
	}
	bound.ofSession = true
	return &Session{bound}, nil
}

// Done is closed when Close is called.
func (c *Client) Done() <-chan struct{} {
	if c == nil || c.core == nil {
		return closedChannel
	}
	return c.core.ctx.Done()
}

// Namespace returns a view of the client under /name, below the client's own namespace: same session, same state, other paths. The
// view is not closed on its own. A name that is no path makes every operation of the view fail. Curator: usingNamespace.
func (c *Client) Namespace(name string) *Client {
	if c == nil || c.core == nil {
		return &Client{}
	}
	view := c.ops
	ns, err := namespacePath(name)
	if err != nil && view.broken == nil {
		view.broken = fmt.Errorf("framework: %w", err)
	}
	view.root += ns
	view.namespace += ns
	return &Client{ops: view}
}
