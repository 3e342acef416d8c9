package framework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
)

// refusedClient returns a client that can reach no server. What it refuses at once, it refuses
// without a request.
func refusedClient(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	p := testzk.Proxy(t)
	require.NoError(t, p.Refuse(true))
	return testzk.Client(t, p.Addr(), opts...)
}

func TestZeroValuesReturnErrors(t *testing.T) {
	ctx := context.Background()
	for kind, o := range map[string]operations{"client": &framework.Client{}, "session": &framework.Session{}} {
		for name, op := range each {
			err := op(ctx, o, "/a")
			require.ErrorIs(t, err, framework.ErrZeroValue, "%s of a zero %s", name, kind)
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		}
	}
	c := &framework.Client{}
	require.ErrorIs(t, c.WaitConnected(ctx), framework.ErrZeroValue)
	require.ErrorIs(t, c.Close(), framework.ErrZeroValue)
	require.ErrorIs(t, bridge.Of(c).Validate(), framework.ErrZeroValue)
	require.ErrorIs(t, bridge.Of(c.Namespace("a")).Validate(), framework.ErrZeroValue)
	require.Equal(t, framework.Closed, c.State())
	c.Listen(func(framework.StateChange) {})()
	_, err := c.Session(ctx)
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.NotNil(t, c.Logger())

	s := &framework.Session{}
	require.ErrorIs(t, s.Err(), framework.ErrZeroValue)
	lifetime := bridge.OfSession(s).Lifetime()
	require.ErrorIs(t, lifetime.Err(), framework.ErrZeroValue)
	closes(t, lifetime.Done(), "Done of a lifetime of no session")
	require.False(t, bridge.OfSession(s).Go(func() {}))
	require.Zero(t, s.ID())
	require.Zero(t, s.Timeout())
	require.True(t, s.ValidUntil().IsZero())
	closes(t, s.Done(), "Done of a zero session")

	require.ErrorContains(t, bridge.Of(nil).Validate(), "client is nil")
	require.Panics(t, func() { refusedClient(t).Listen(nil) })
}

func TestNilContextIsAnError(t *testing.T) {
	c := refusedClient(t)
	var none context.Context
	for name, op := range each {
		err := op(none, c, "/a")
		require.ErrorIs(t, err, framework.ErrNilContext, name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	}
	require.ErrorIs(t, c.WaitConnected(none), framework.ErrNilContext)
	_, err := c.Session(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
}

func TestUseAfterCloseIsErrClosed(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	s := session(t, c)
	require.NoError(t, c.Close())
	ctx := testzk.Context(t)
	for kind, o := range map[string]operations{"client": c, "session": s, "view": c.Namespace("a")} {
		for name, op := range each {
			err := op(ctx, o, "/a")
			require.ErrorIs(t, err, framework.ErrClosed, "%s of a closed %s", name, kind)
			require.NotErrorIs(t, err, context.Canceled, "the caller's context was not canceled")
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		}
	}
	failed(t, c.WaitConnected(ctx), framework.NotApplied, framework.ErrClosed)
	_, err := c.Session(ctx)
	failed(t, err, framework.NotApplied, framework.ErrClosed)
	require.ErrorIs(t, s.Err(), framework.ErrClosed)
	require.Equal(t, framework.Closed, c.State())
	require.False(t, bridge.OfSession(s).Go(func() {}))
	c.Listen(func(framework.StateChange) { t.Error("a change after Close") })()
}

func TestBadPathsAreRefusedWithoutARequest(t *testing.T) {
	c := refusedClient(t)
	for _, path := range []string{
		"", "a", "a/b", "//", "/a/", "//a", "/a//b", "/.", "/a/..", "/a/./b", "/a\x00", "/\x1f", "/\xff", "/\u0085",
		"/\uffff",
	} {
		for name, op := range each {
			if name == "list ephemerals" {
				continue // it takes a prefix
			}
			within(t, name, func() {
				err := op(testzk.Context(t), c, path)
				require.ErrorIs(t, err, framework.ErrInvalidPath, "%s of %q", name, path)
				require.ErrorContains(t, err, fmt.Sprintf("%q", path))
				require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
			})
		}
		require.ErrorIs(t, framework.CheckPath(path), framework.ErrInvalidPath)
	}
	require.NoError(t, framework.CheckPath("/a/b"))
}

func TestBadArgumentsAreRefusedWithoutARequest(t *testing.T) {
	c := refusedClient(t)
	ctx := testzk.Context(t)
	create := func(path string, opts ...framework.CreateOption) error {
		_, err := c.Create(ctx, path, nil, opts...)
		return err
	}
	transaction := func(list ...framework.Op) error {
		_, err := c.Multi(ctx, list...)
		return err
	}
	for want, err := range map[string]error{
		"no operations":                    transaction(),
		"operation 1 is nil":               transaction(framework.CheckOp("/a", -1), nil),
		"create option is nil":             create("/a", nil),
		"time to live 0s is not between":   create("/a", framework.TTL(0)),
		"time to live 10ns is not between": create("/a", framework.TTL(10)),
		"ephemeral, container and time":    create("/a", framework.Ephemeral(), framework.Container()),
		"time to live exclude each":        create("/a", framework.Ephemeral(), framework.TTL(time.Hour)),
		"a container cannot be sequential": create("/a", framework.Container(), framework.Sequential()),
		"OrSet excludes Sequential":        create("/a", framework.OrSet(), framework.Sequential()),
		"OrSet excludes":                   create("/a", framework.OrSet(), framework.Protected()),
		"there is no name to protect":      create("/", framework.Protected()),
		"not allowed in a transaction":     transaction(framework.CreateOp("/a", nil, framework.Container())),
		"create /b: Container, TTL":        transaction(framework.CreateOp("/b", nil, framework.TTL(time.Hour))),
		"create /d: Container, TTL":        transaction(framework.CreateOp("/d", nil, framework.OrSet())),
	} {
		require.ErrorContains(t, err, want)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
		require.False(t, framework.IsTransient(err), "%v", err)
	}
}
