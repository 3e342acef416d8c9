package leader_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
)

func TestInvalidArgumentsAreRefusedAndNamed(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	always := func(error) bool { return true }
	for name, bad := range map[string]struct {
		client *framework.Client
		path   string
		opts   []leader.Option
		says   []string
	}{
		"nil client":    {nil, "/leader", nil, []string{"client is nil"}},
		"zero client":   {&framework.Client{}, "/leader", nil, []string{framework.ErrZeroValue.Error()}},
		"relative path": {c, "leader", nil, []string{framework.ErrInvalidPath.Error(), "leader"}},
		"root":          {c, "/", nil, []string{framework.ErrInvalidPath.Error(), `"/"`}},
		"nil option":    {c, "/leader", []leader.Option{leader.WithID("a"), nil}, []string{"option 1 is nil"}},
		"id not UTF-8":  {c, "/leader", []leader.Option{leader.WithID("\xff")}, []string{`"\xff"`, "UTF-8"}},
		"two identities": {
			c, "/leader", []leader.Option{leader.WithID("a"), leader.WithIdentity()},
			[]string{"WithID", "WithIdentity"}},
		"no delay": {c, "/leader", []leader.Option{leader.WithLockDelay(0)}, []string{"WithLockDelay: 0s"}},
		"negative delay": {
			c, "/leader", []leader.Option{leader.WithLockDelay(-time.Second)}, []string{"WithLockDelay: -1s"}},
		"nil requeue": {c, "/leader", []leader.Option{leader.WithRequeue(nil)}, []string{"WithRequeue: nil"}},
		"requeue: Latch": {
			c, "/leader", []leader.Option{leader.WithRequeue(always)}, []string{"WithRequeue", "Election"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ofElection := leader.New(bad.client, bad.path, bad.opts...)
			_, ofLatch := leader.NewLatch(bad.client, bad.path, bad.opts...)
			if !strings.HasPrefix(name, "requeue:") {
				refuses(t, ofElection, bad.says)
			}
			refuses(t, ofLatch, bad.says)
		})
	}
}

func refuses(t *testing.T, err error, says []string) {
	t.Helper()
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "new "), err.Error())
	for _, word := range says {
		require.ErrorContains(t, err, word)
	}
}

func TestInvalidCallsAreErrors(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	e, l := newElection(t, c, "/leader"), newLatch(t, c, "/leader")
	lead := func(context.Context, *leader.Term) error { return nil }
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	var none context.Context

	require.Equal(t, []string{"/leader", "/leader"}, []string{e.Path(), l.Path()})
	require.ErrorContains(t, e.Run(t.Context(), nil), "nil function")
	require.ErrorIs(t, e.Run(none, lead), framework.ErrNilContext)
	require.ErrorIs(t, e.Run(ended, lead), why)
	require.ErrorIs(t, l.Start(none), framework.ErrNilContext)
	require.ErrorIs(t, l.Start(ended), why)
	_, err := l.Await(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = l.Await(ended)
	require.ErrorIs(t, err, why)
	for _, zero := range []*leader.Election{{}} {
		require.ErrorIs(t, zero.Run(t.Context(), lead), framework.ErrZeroValue)
		require.Nil(t, zero.Term())
		require.False(t, zero.Interrupt())
		require.Empty(t, zero.Path())
	}
	for _, zero := range []*leader.Latch{{}} {
		require.ErrorIs(t, zero.Start(t.Context()), framework.ErrZeroValue)
		require.ErrorIs(t, zero.Close(), framework.ErrZeroValue)
		_, err := zero.Await(t.Context())
		require.ErrorIs(t, err, framework.ErrZeroValue)
		require.Nil(t, zero.Term())
		zero.Listen(func(leader.Change) {})()
		require.Empty(t, zero.Path())
	}
	require.Panics(t, func() { l.Listen(nil) })

	_, err = newElection(t, c, "/leader").Participants(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = l.Participants(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	require.ErrorIs(t, observed(none, c, "/leader"), framework.ErrNilContext)
	require.ErrorContains(t, observed(t.Context(), nil, "/leader"), "client is nil")
	require.ErrorIs(t, observed(t.Context(), c, "/leader/"), framework.ErrInvalidPath)
}

// observed returns the only report of an observer.
func observed(ctx context.Context, c *framework.Client, path string) (last error) {
	for participant, err := range leader.Observe(ctx, c, path) {
		if last != nil || participant.Node != "" {
			return errors.New("Observe continues after a permanent error")
		}
		last = err
	}
	return last
}

func TestZeroTermHasEnded(t *testing.T) {
	for _, none := range []*leader.Term{{}} {
		require.ErrorIs(t, none.Err(), recipes.ErrNotHeld)
		require.ErrorIs(t, none.Resign(), recipes.ErrNotHeld)
		require.ErrorIs(t, none.Context(t.Context()).Err(), context.Canceled)
		require.Zero(t, none.Token())
		require.Empty(t, none.Path())
		require.True(t, none.ValidUntil().IsZero())
		require.Nil(t, none.Revoked())
		_, err := none.Guard(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotHeld)
		<-none.Done()
	}
}
