package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestSmoke(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx := testzk.Context(t)
	path := testzk.Path(t)
	s, err := semaphore.New(c, path, 3, semaphore.WithSharedLimit(path+"-limit"), semaphore.WithSlots())
	require.NoError(t, err)
	r1, err := s.Acquire(ctx)
	require.NoError(t, err)
	r2, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	t.Log(r1.Paths(), semaphore.Slots(r1), r2.Paths(), semaphore.Slots(r2), r2.Tokens())
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = s.Acquire(short)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	got := make(chan *recipes.Hold)
	for range 2 {
		go func() {
			h, err := s.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
	}
	testzk.Eventually(t, func() bool { p, _ := s.Participants(ctx); return len(p) == 5 }, "queued")
	require.NoError(t, s.SetLimit(ctx, 4))
	h := <-got
	t.Log(semaphore.Slots(h))
	require.NoError(t, r2.Release())
	h2 := <-got
	require.NoError(t, h.Release())
	require.NoError(t, h2.Release())
	require.NoError(t, r1.Release())
	testzk.Empty(t, path+"/leases")
	testzk.Empty(t, path+"/locks")
	testzk.Empty(t, path+"/slots")
	m, err := semaphore.NewMutex(c, path)
	require.NoError(t, err)
	h, err = m.Acquire(ctx)
	require.NoError(t, err)
	_, err = m.TryAcquire(h.Context(ctx))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	x, err := semaphore.New(c, path, 2)
	require.NoError(t, err)
	_, err = x.Acquire(ctx)
	require.ErrorIs(t, err, semaphore.ErrLimit)
	t.Log(err)
	require.NoError(t, h.Release())
	h, err = x.Acquire(ctx)
	require.NoError(t, err)
	_, err = m.Acquire(ctx)
	require.ErrorIs(t, err, semaphore.ErrLimit)
	require.NoError(t, h.Release())
}
