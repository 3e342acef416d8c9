package fence_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
)

func nothing() error { return nil }

func TestTokensThatAreNotSmallerAreAccepted(t *testing.T) {
	var r fence.Register
	require.Zero(t, r.Last())
	for _, token := range []int64{1, 1, 2, 7, 7, 1<<63 - 1, 1<<63 - 1} {
		require.NoError(t, r.Accept(token))
		require.Equal(t, token, r.Last())
	}
}

func TestSmallerTokensAreRefusedAndNotRemembered(t *testing.T) {
	var r fence.Register
	require.NoError(t, r.Accept(34))
	for name, err := range map[string]error{
		"Accept": r.Accept(33),
		"Do":     r.Do(33, func() error { t.Error("written with a stale token"); return nil }),
	} {
		require.ErrorIs(t, err, fence.ErrStale, name)
		require.NotErrorIs(t, err, fence.ErrNoToken, name)
		require.EqualError(t, err, "fence: stale token: 0x21 after 0x22", name)
	}
	require.Equal(t, int64(34), r.Last())
	require.NoError(t, r.Accept(34))
}

func TestNumbersThatAreNoTokensAreRefused(t *testing.T) {
	var r fence.Register
	for _, token := range []int64{0, -1, -1 << 63} {
		require.ErrorIs(t, r.Accept(token), fence.ErrNoToken)
		err := r.Do(token, func() error { t.Error("written without a token"); return nil })
		require.ErrorIs(t, err, fence.ErrNoToken)
		require.NotErrorIs(t, err, fence.ErrStale)
	}
	require.Zero(t, r.Last())
	require.NoError(t, r.Accept(1))
}

func TestNilWriteIsRefusedAndItsTokenNotRemembered(t *testing.T) {
	var r fence.Register
	require.EqualError(t, r.Do(1, nil), "fence: nil function")
	require.Zero(t, r.Last())
}

func TestFailureOfAWriteIsReturnedAndItsTokenRemembered(t *testing.T) {
	var r fence.Register
	full := errors.New("disk full")
	require.ErrorIs(t, r.Do(2, func() error { return full }), full)
	require.ErrorIs(t, r.Do(1, nothing), fence.ErrStale)
	require.NoError(t, r.Do(2, nothing), "the same holder may try again")
}

func TestWriteThatPanicsLeavesTheRegisterUsable(t *testing.T) {
	var r fence.Register
	require.Panics(t, func() { _ = r.Do(2, func() error { panic("bug") }) })
	require.ErrorIs(t, r.Accept(1), fence.ErrStale)
	require.NoError(t, r.Accept(3))
}

func TestCallsWaitForTheWriteUnderWay(t *testing.T) {
	for name, call := range map[string]func(*fence.Register, int64) error{
		"Accept": (*fence.Register).Accept,
		"Do":     func(r *fence.Register, token int64) error { return r.Do(token, nothing) },
	} {
		t.Run(name, func(t *testing.T) {
			var r fence.Register
			began, finish := make(chan struct{}), make(chan struct{})
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- r.Do(1, func() error { close(began); <-finish; return nil }) }()
			<-began
			require.Equal(t, int64(1), r.Last(), "Last waits for the write")
			go func() { second <- call(&r, 2) }()
			select {
			case <-second:
				require.FailNow(t, "the call of a later holder returned during the write of an earlier one")
			case <-time.After(50 * time.Millisecond):
			}
			close(finish)
			require.NoError(t, <-first)
			require.NoError(t, <-second)
			require.Equal(t, int64(2), r.Last())
		})
	}
}

// The race detector reports writes that run at the same time.
func TestWritesNeverGoBack(t *testing.T) {
	const writers, writes, newest = 8, 500, 1_000_000
	var r fence.Register
	var written []int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range writes {
				token := int64(i*100 + 1 + rand.IntN(200))
				err := r.Do(token, func() error {
					runtime.Gosched()
					written = append(written, token)
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, r.Do(newest, func() error { written = append(written, newest); return nil }))
	require.IsIncreasing(t, slices.Compact(written))
	require.Greater(t, len(written), writes/5, "too few writes to prove anything")
	require.Equal(t, int64(newest), r.Last())
}
