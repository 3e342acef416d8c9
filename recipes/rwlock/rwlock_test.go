package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func TestSmoke(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx := testzk.Context(t)
	rw, err := rwlock.New(c, testzk.Path(t))
	require.NoError(t, err)
	r1, err := rw.Read().Acquire(ctx)
	require.NoError(t, err)
	r2, err := rw.Read().Acquire(ctx)
	require.NoError(t, err)
	_, err = rw.Write().TryAcquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	_, err = rw.TryUpgrade(r1.Context(ctx))
	require.ErrorIs(t, err, rwlock.ErrUpgrade)
	_, err = rw.Write().Acquire(r1.Context(ctx))
	require.ErrorIs(t, err, rwlock.ErrUpgrade)
	require.NoError(t, r2.Release())
	w, err := rw.TryUpgrade(r1.Context(ctx))
	require.NoError(t, err)
	require.Equal(t, r1.Token(), w.Token())
	require.NoError(t, r1.Release())
	got := make(chan *recipes.Hold)
	go func() {
		h, _ := rw.Write().Acquire(ctx)
		got <- h
	}()
	testzk.Eventually(t, func() bool { p, _ := rw.Write().Participants(ctx); return len(p) == 2 }, "queued")
	d, err := rw.Read().Acquire(w.Context(ctx))
	require.NoError(t, err)
	require.NoError(t, w.Release())
	select {
	case <-got:
		t.Fatal("in")
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, d.Release())
	h := <-got
	require.NotNil(t, h)
	require.NoError(t, h.Release())
	_ = context.Background
}
