package multilock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
)

// set is a list of mutexes that are acquired all at once, or in order.
type set struct {
	client   *framework.Client
	key      any
	together *queue.Lock
	reports  *report.Reporter // of together
	sorted   *sequence
	inOrder  atomic.Bool
}

func newSet(c *framework.Client, paths []string, data []byte, inOrder bool) *set {
	s := &set{client: c, sorted: &sequence{}}
	var queues []*queue.Queue
	for i, path := range paths {
		queues = append(queues, queue.NewQueue(c, path, queue.Exclusive, data))
		s.sorted.given = append(s.sorted.given, i)
	}
	slices.SortFunc(s.sorted.given, func(a, b int) int { return strings.Compare(paths[a], paths[b]) })
	for _, i := range s.sorted.given {
		s.sorted.locks = append(s.sorted.locks, newSingle(queue.Single(c, recipe, paths[i], queue.Exclusive, data)))
	}
	s.key = newSetKey(queues)
	s.sorted.key = s.key
	s.together = queue.New(queue.Spec{Client: c, Recipe: recipe, Paths: paths, Queues: queues, Key: s.key})
	s.reports = report.New(s.together)
	s.inOrder.Store(inOrder)
	return s
}

// recipe is the name of the recipe in metrics.
const recipe = "multilock"

// Acquire waits in all queues.
func (s *set) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, (*report.Reporter).Acquire, (*sequence).Acquire)
}

// TryAcquire waits in no queue.
func (s *set) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, (*report.Reporter).Try, (*sequence).TryAcquire)
}

func (s *set) acquire(ctx context.Context,
	together func(*report.Reporter, context.Context, report.Acquirer) (*ownership.Hold, error),
	inOrder func(*sequence, context.Context) (*recipes.Hold, error),
) (*recipes.Hold, error) {
	if hold, ok := ownership.Reenter(ctx, s.key); ok {
		return recipes.NewHold(hold, nil)
	}
	for _, q := range s.together.Queues {
		if _, held := ownership.Current(ctx, q.Key()); held {
			return nil, fmt.Errorf("acquire %s: %w", q.Path(), ErrPartlyHeld)
		}
	}
	if s.inOrder.Load() {
		return inOrder(s.sorted, ctx)
	}
	hold, err := together(s.reports, ctx, s.together)
	if !ctxerr.Answered(ctx, err, framework.ErrTooLarge) {
		return recipes.NewHold(hold, err)
	}
	s.client.Logger().Named("multilock").Warn("a multi-lock is too large for one transaction: acquiring the locks "+
		"in the order of their paths, which can deadlock with multi-locks that do not",
		zap.Int("locks", len(s.together.Queues)), zap.Error(err))
	s.inOrder.Store(true)
	return inOrder(s.sorted, ctx)
}

// single is one mutex of a set. It does not re-enter.
type single struct {
	lock    *queue.Lock
	reports *report.Reporter
}

func newSingle(lock *queue.Lock) single { return single{lock, report.New(lock)} }

func (s single) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return recipes.NewHold(s.reports.Acquire(ctx, s.lock))
}

func (s single) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return recipes.NewHold(s.reports.Try(ctx, s.lock))
}
