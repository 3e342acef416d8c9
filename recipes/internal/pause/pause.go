// Package pause has the pauses between attempts that fail.
package pause

import (
	"context"
	"time"

	"github.com/docent-zk/docent/internal/ctxerr"
)

// After returns the pause after an attempt that has failed: 50 ms, doubled for each failure in a row
// before that one, and a second at most.
func After(before int) time.Duration { return min(50*time.Millisecond<<min(before, 5), time.Second) }

// For waits for d, or until stop is closed. It fails when ctx ends.
func For(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return nil
}
