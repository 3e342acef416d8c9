package queue

import (
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/pause"
	"github.com/docent-zk/docent/retry"
)

// RetryInSession calls read, which makes one attempt at something that may be repeated, until
// there is an answer, ctx ends or the session is lost. A waiter so keeps its node through an
// outage. It does so even where the caller repeats the whole acquire by retry.Do.
func RetryInSession[T any](ctx context.Context, s *framework.Session,
	read func(context.Context) (T, error)) (T, error) {
	var out T
	again := func(err error) bool { return framework.IsTransient(err) && s.Err() == nil }
	err := retry.Do(retry.Ungoverned(ctx), retryDelay, again, func(ctx context.Context) (err error) {
		out, err = read(ctx)
		return err
	})
	if lost := s.Err(); err != nil && lost != nil {
		err = lost
	}
	return out, err
}

// retryDelay is the policy of RetryInSession, which has no end.
func retryDelay(attempt int, _ time.Duration) (time.Duration, bool) {
	return pause.After(attempt), true
}
