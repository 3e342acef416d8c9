package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// A revoked node says so, and does not say which client it is of any more.
func TestRevokedNodeIsShown(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		hold := testlock.Held(t, newMutex(t, c, "/lock", mutex.WithIdentity()))
		n := show(t, c, "/lock").Nodes[0]
		require.False(t, n.Revoked)
		require.NotEmpty(t, n.Host)
		require.NoError(t, recipes.Revoke(t.Context(), c, n.Participant()))
		<-hold.Revoked()
		n = show(t, c, "/lock").Nodes[0]
		require.True(t, n.Revoked)
		require.Empty(t, n.Host)
	})
}

func TestAgesAreByTheClockOfTheServers(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		testlock.Held(t, newMutex(t, c, "/lock"))
		time.Sleep(time.Minute)
		o := show(t, c, "/lock")
		require.InDelta(t, time.Minute, o.Age(o.Nodes[0]), float64(time.Second))
		o = show(t, c, "/lock", inspect.WithClockOffset(-time.Hour))
		require.Zero(t, o.Age(o.Nodes[0]), "never negative")
		o = show(t, c, "/lock", inspect.WithClockOffset(time.Hour))
		require.InDelta(t, time.Hour+time.Minute, o.Age(o.Nodes[0]), float64(time.Second))
		require.Zero(t, o.Age(inspect.Node{}))
	})
}

func TestIDsAreHexadecimalText(t *testing.T) {
	for text, want := range map[string]inspect.ID{
		"0x10000a2b3c40001": 0x10000a2b3c40001, "12": 12, "0xe000000000000001": -0x1fffffffffffffff, "-5": -5,
	} {
		id, err := inspect.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, want, id)
		var back inspect.ID
		form, err := id.MarshalText()
		require.NoError(t, err)
		require.NoError(t, back.UnmarshalText(form))
		require.Equal(t, id, back)
	}
	require.Equal(t, "0xe000000000000001", inspect.ID(-0x1fffffffffffffff).String())
	_, err := inspect.ParseID("lock")
	require.ErrorContains(t, err, `"lock"`)
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		var none context.Context
		for name, bad := range map[string]struct {
			ctx  context.Context
			c    *framework.Client
			path string
			opts []inspect.Option
			says string
		}{
			"nil context":    {none, c, "/", nil, framework.ErrNilContext.Error()},
			"nil client":     {t.Context(), nil, "/", nil, "client is nil"},
			"zero client":    {t.Context(), &framework.Client{}, "/", nil, framework.ErrZeroValue.Error()},
			"relative path":  {t.Context(), c, "a", nil, framework.ErrInvalidPath.Error()},
			"nil option":     {t.Context(), c, "/", []inspect.Option{nil}, "option 0 is nil"},
			"negative depth": {t.Context(), c, "/", []inspect.Option{inspect.WithDepth(-1)}, "WithDepth: -1"},
			"no limit":       {t.Context(), c, "/", []inspect.Option{inspect.WithLimit(0)}, "WithLimit: 0"},
			"no nodes":       {t.Context(), c, "/", []inspect.Option{inspect.WithMaxNodes(0)}, "WithMaxNodes: 0"},
			"nil limit of a semaphore": {t.Context(), c, "/", []inspect.Option{inspect.WithLimitNode(nil)},
				"WithLimitNode: the function is nil"},
		} {
			_, err := inspect.Show(bad.ctx, bad.c, bad.path, bad.opts...)
			require.ErrorContains(t, err, bad.says, name)
			_, err = all(inspect.Walk(bad.ctx, bad.c, bad.path, bad.opts...))
			require.ErrorContains(t, err, bad.says, name)
			_, err = inspect.Session(bad.ctx, bad.c, bad.path, 1, bad.opts...)
			require.ErrorContains(t, err, bad.says, name)
		}
	})
}
