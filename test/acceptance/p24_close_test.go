package acceptance_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// Close ends in every state, within the connect timeout and a second, and leaves no goroutine and
// no socket. The states are connecting, in the handshake, connected, connected with unanswered
// requests, suspended, lost, and refused a credential. Holds end, and the session ends where a
// server can be reached.
func TestP24_CloseEndsInEveryState(t *testing.T) {
	onlyInProcess(t, "the states are made by faults of the in-process server, in virtual time")
	const connectTimeout = 3 * time.Second
	for name, row := range map[string]struct {
		before func(srv *zktest.Server, client *zktest.Client) // called before there is a client
		// Called once the client holds a lock; nil: it never does.
		after func(t *testing.T, srv *zktest.Server, client *zktest.Client)
		stays bool // the session stays on the servers
	}{
		"connecting":        {before: func(_ *zktest.Server, c *zktest.Client) { c.Refuse(true) }},
		"handshake hanging": {before: func(_ *zktest.Server, c *zktest.Client) { c.Freeze() }},
		"refused a credential": {stays: true, before: func(srv *zktest.Server, _ *zktest.Client) {
			srv.On(fault.Match{Op: fault.OpAuth, Times: 1000}, fault.Fail(zktest.AuthFailed))
		}},
		"connected": {after: func(*testing.T, *zktest.Server, *zktest.Client) {}},
		"requests under way that are answered late": {after: func(t *testing.T, srv *zktest.Server, _ *zktest.Client) {
			srv.On(fault.Match{Op: fault.OpSync}, fault.Delay(2*time.Second))
			time.Sleep(2 * time.Second)
		}},
		"cut off and not aware of it": {stays: true, after: func(_ *testing.T, _ *zktest.Server, c *zktest.Client) {
			c.Cut()
		}},
		"suspended": {stays: true, after: func(_ *testing.T, _ *zktest.Server, c *zktest.Client) {
			c.Refuse(true)
			c.Reset()
			time.Sleep(time.Second)
		}},
		"suspended, and a server comes back": {after: func(t *testing.T, _ *zktest.Server, c *zktest.Client) {
			c.Refuse(true)
			c.Reset()
			time.Sleep(time.Second)
			time.AfterFunc(time.Second, func() { c.Refuse(false) })
		}},
		"lost": {after: func(_ *testing.T, _ *zktest.Server, c *zktest.Client) { c.Cut(); time.Sleep(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				user := srv.Client("user")
				if row.before != nil {
					row.before(srv, user)
				}
				sockets := &p24Sockets{dial: user.DialContext}
				c, err := framework.New(srv.MemAddr(), framework.WithDialer(sockets.DialContext),
					framework.WithConnectTimeout(connectTimeout),
					framework.WithSessionTimeout(12*time.Second), framework.WithAuth("digest", []byte("user:secret")))
				require.NoError(t, err)
				if row.after != nil {
					mu, err := mutex.New(c, "/lock")
					require.NoError(t, err)
					hold, err := mu.Acquire(t.Context())
					require.NoError(t, err)
					row.after(t, srv, user)
					defer func() { require.Error(t, hold.Err()) }()
				} else {
					time.Sleep(2 * time.Second)
				}
				start := time.Now()
				require.NoError(t, c.Close())
				require.LessOrEqual(t, time.Since(start), connectTimeout+time.Second)
				require.Zero(t, sockets.open.Load(), "sockets that are open")
				require.Equal(t, framework.Closed, c.State())
				if !row.stays {
					children, err := srv.Children("/lock")
					require.True(t, err != nil || len(children) == 0, "nodes that are left: %v", children)
					require.Empty(t, srv.Sessions(), "sessions that are left")
				}
			}) // the end of the bubble checks that no goroutine is left
		})
	}
}

// p24Sockets counts open sockets.
type p24Sockets struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	open atomic.Int64
}

func (s *p24Sockets) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return &p24Socket{Conn: conn, sockets: s}, nil
}

type p24Socket struct {
	net.Conn
	sockets *p24Sockets
	closed  atomic.Bool
}

func (s *p24Socket) Close() error {
	if !s.closed.Swap(true) {
		s.sockets.open.Add(-1)
	}
	return s.Conn.Close()
}

// When Close of a connected client returns, all of its ephemeral nodes are deleted: those of
// holders, of waiters and others. This is repeated 100 times.
func TestP24_EphemeralsAreDeletedBeforeCloseReturns(t *testing.T) {
	path := testzk.Path(t)
	observer := testzk.Connected(t, testzk.Connect(), long())
	_, err := observer.Create(testzk.Context(t), path+"/lock", nil, framework.Parents()) // no container: it stays
	require.NoError(t, err)
	for range 100 {
		c := testzk.Connected(t, testzk.Connect(), patient()...)
		ctx := testzk.Context(t)
		mu, err := mutex.New(c, path+"/lock")
		require.NoError(t, err)
		hold, err := mu.Acquire(ctx)
		require.NoError(t, err)
		waiter := make(chan error, 1)
		go func() { _, err := mu.Acquire(ctx); waiter <- err }()
		_, err = c.Create(ctx, path+"/ephemeral", nil, framework.Ephemeral())
		require.NoError(t, err)

		p24Closes(t, c, observer, path+"/lock")
		require.ErrorIs(t, hold.Err(), framework.ErrClosed)
		require.ErrorIs(t, <-waiter, framework.ErrClosed)
		_, err = observer.Exists(testzk.Context(t), path+"/ephemeral")
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
}

// patient returns options with which Close waits longer than a busy machine takes to end the session on the
// servers, and not until it expires.
func patient() []framework.Option {
	return []framework.Option{long(), framework.WithConnectTimeout(20 * time.Second)}
}

// p24Closes checks that no node is left below path when Close returns.
func p24Closes(t *testing.T, c, observer *framework.Client, path string) {
	t.Helper()
	require.NoError(t, c.Close())
	require.NoError(t, observer.Sync(testzk.Context(t), path))
	left, _, err := observer.Children(testzk.Context(t), path)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A request that a server delays for longer than a second does not prevent Close from ending the
// session on the servers.
func TestP24_StuckRequestDoesNotKeepTheSession(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	observer := testzk.Connected(t, testzk.Connect(), long())
	_, err := observer.Create(testzk.Context(t), path, nil, framework.Parents()) // no container: it stays
	require.NoError(t, err)
	c := testzk.Connected(t, p.Addr(), patient()...)
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	_, err = mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	slow := p.On(fault.Match{Op: fault.OpGetACL}, fault.Hold())
	c.Listen(func(change framework.StateChange) {
		if change.State == framework.Lost { // which Close reports before it ends the session on the servers
			time.AfterFunc(1500*time.Millisecond, slow.Release)
		}
	})
	request := make(chan error, 1)
	go func() { _, _, err := c.GetACL(testzk.Context(t), path); request <- err }()
	require.NoError(t, slow.Wait(testzk.Context(t)))
	p24Closes(t, c, observer, path)
	require.ErrorIs(t, <-request, framework.ErrClosed)
}
