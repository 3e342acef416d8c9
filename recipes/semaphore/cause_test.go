package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The cause of a canceled context may have several errors of several operations.
func TestAcquireEndsWithAnyCancelCause(t *testing.T) {
	for name, how := range map[string]func(context.Context, *semaphore.Semaphore) error{
		"acquire": func(ctx context.Context, s *semaphore.Semaphore) error { _, err := s.Acquire(ctx); return err },
		"set":     func(ctx context.Context, s *semaphore.Semaphore) error { return s.SetLimit(ctx, 3) },
		"limit":   func(ctx context.Context, s *semaphore.Semaphore) error { _, err := s.Limit(ctx); return err },
	} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			c := client(t, srv, "s")
			require.NoError(t, c.WaitConnected(t.Context()))
			s := newSemaphore(t, c, "/sem", 1, semaphore.WithSharedLimit("/limit"))
			held := srv.On(fault.Match{Client: "s", Path: "/limit"}, fault.Hold())
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			stop := make(chan struct{})
			go func() { done <- how(ctx, s) }()
			require.NoError(t, held.Wait(t.Context()))
			cancel(errors.Join(zk.ErrNoNode, zk.ErrNodeExists))
			select {
			case err := <-done:
				t.Log(name, err)
			case <-time.After(time.Minute):
				t.Errorf("%s does not end", name)
			}
			close(stop)
			held.Release()
		})
	}
}
