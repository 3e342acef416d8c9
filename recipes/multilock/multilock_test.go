package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

func TestSmoke(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx := testzk.Context(t)
	path := testzk.Path(t)
	a, b := path+"/a", path+"/b"
	ml, err := multilock.New(c, []string{b, a})
	require.NoError(t, err)
	ma, err := mutex.New(c, a)
	require.NoError(t, err)
	mb, err := mutex.New(c, b)
	require.NoError(t, err)
	h, err := ml.Acquire(ctx)
	require.NoError(t, err)
	require.Len(t, h.Tokens(), 2)
	_, err = ma.TryAcquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	in, err := ma.Acquire(h.Context(ctx))
	require.NoError(t, err)
	require.NoError(t, in.Release())
	_, err = h.Guard(ctx, framework.CreateOp(path+"/x", nil))
	require.NoError(t, err)
	got := make(chan *recipes.Hold)
	go func() {
		h, _ := ml.Acquire(ctx)
		got <- h
	}()
	testzk.Eventually(t, func() bool { p, _ := ma.Participants(ctx); return len(p) == 2 }, "queued")
	require.NoError(t, h.Release())
	h = <-got
	require.NoError(t, h.Release())
	of, err := multilock.Of(ma, mb)
	require.NoError(t, err)
	h, err = of.Acquire(ctx)
	require.NoError(t, err)
	require.Len(t, h.Tokens(), 2)
	_, err = h.Guard(ctx)
	require.NoError(t, err)
	in, err = ma.Acquire(h.Context(ctx))
	require.NoError(t, err)
	require.NoError(t, in.Release())
	_, err = ml.Acquire(h.Context(ctx))
	require.ErrorIs(t, err, multilock.ErrPartlyHeld)
	require.NoError(t, c.Delete(ctx, h.Paths()[1], -1))
	_, err = h.Guard(ctx)
	require.ErrorIs(t, err, recipes.ErrNodeDeleted)
	testzk.Empty(t, a)
	testzk.Empty(t, b)
	require.ErrorIs(t, h.Release(), recipes.ErrNodeDeleted)
	io, err := multilock.New(c, []string{b, a}, multilock.InOrder())
	require.NoError(t, err)
	h, err = io.Acquire(ctx)
	require.NoError(t, err)
	in, err = io.Acquire(h.Context(ctx))
	require.NoError(t, err)
	require.Equal(t, h.Tokens(), in.Tokens())
	require.NoError(t, in.Release())
	require.NoError(t, h.Release())
	testzk.Empty(t, a)
}
