package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// slowLock is a lock whose Acquire fails with an error once its context has ended.
type slowLock struct{ err error }

func (l slowLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("acquire /x: %w: %w", l.err, ctx.Err())
}

func (l slowLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) { return l.Acquire(ctx) }

// A client may have connected again since its wait ended.
func TestExitCodeOfAWaitIsThatOfItsEnd(t *testing.T) {
	t.Parallel()
	client := testzk.Connected(t, testzk.Connect())
	for want, reason := range map[int]error{
		exitNoServers:   framework.ErrNotConnected,
		exitNotAcquired: recipes.ErrNotAcquired,
	} {
		_, err := kind{bounded: true, wait: time.Millisecond}.acquire(t.Context(), client, slowLock{reason})
		require.Equal(t, want, codeOf(err), "%v", err)
		require.Equal(t, want == exitNotAcquired, errors.Is(err, recipes.ErrNotAcquired), "%v", err)
	}
}
