package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
)

// ahead lists who stands in our way, first come first.
func (l *Line) ahead(ctx context.Context, p *place) ([]member, error) {
	children, err := patiently(ctx, p, func(ctx context.Context) ([]string, error) {
		children, _, err := p.session.Children(ctx, l.path)
		return children, err
	})
	if err != nil {
		return nil, vanished(err)
	}
	return l.inFront(children, p)
}

// inFront picks from children those that stand in the way of p. Our own node must be among the children: whoever is not in line is not
// first in it.
func (l *Line) inFront(children []string, p *place) ([]member, error) {
	present := false
	var ahead []member
	for _, m := range lineup(children, l.rules.Block) {
		if m.name != p.name && before(m.seq, p.seq) {
			ahead = append(ahead, m)
		}
	}
	for _, name := range children {
		present = present || name == p.name
	}
	if !present {
		return nil, errVanished
	}
	return ahead, nil
}

// wait waits until nobody is ahead of p any more.
func (l *Line) wait(ctx context.Context, p *place, ahead []member) error {
	for len(ahead) > 0 {
		gone, err := l.await(ctx, p, ahead[max(0, len(ahead)-2)])
		if err != nil {
			return waited(ctx, err)
		}
		if gone && len(ahead) == 1 {
			return nil
		}
		if ahead, err = l.ahead(ctx, p); err != nil {
			return waited(ctx, err)
		}
	}
	return nil
}

// waited says of an error that ended a wait for others that it was one.
func waited(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", recipes.ErrNotAcquired, err)
	}
	return err
}

// await waits for m to go, or for a reason to look again. Gone means that m was deleted and we are still in line.
func (l *Line) await(ctx context.Context, p *place, m member) (gone bool, err error) {
	watch, err := l.watch(ctx, p, m.name)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil // when, and whether before us, is for a list to say
	}
	if err != nil {
		return false, err
	}
	for {
		if err := l.watchOwn(ctx, p); err != nil {
			return false, err
		}
		select {
		case <-watch.Fired():
			// The server tells of deletions in their order. If ours came first, its watch has fired before.
			return watch.Event() == zk.EventNodeDeleted && !fired(p.watch), p.session.Err()
		case <-p.watch.Fired():
		case <-ctx.Done():
			return false, ctxerr.Of(ctx)
		}
	}
}

func fired(w *framework.Watch) bool { return w.Event() != 0 }

func (l *Line) watch(ctx context.Context, p *place, name string) (*framework.Watch, error) {
	return patiently(ctx, p, func(ctx context.Context) (*framework.Watch, error) {
		_, _, w, err := p.session.GetW(ctx, l.node(name))
		return w, err
	})
}

// watchOwn watches our own node, so that we hear if it goes. Its Stat also tells our token, and that the node is ours.
func (l *Line) watchOwn(ctx context.Context, p *place) error {
	if p.watch != nil && !fired(p.watch) {
		return nil
	}
	_, err := patiently(ctx, p, func(ctx context.Context) (struct{}, error) {
		data, stat, w, err := p.session.GetW(ctx, l.node(p.name))
		if err != nil {
			return struct{}{}, vanished(err)
		}
		p.watch, p.data = w, data
		return struct{}{}, p.learn(stat)
	})
	return err
}

// patiently makes single attempts at a read until one is answered: whoever has a place in line keeps it through an outage, as long as the
// session lasts.
func patiently[T any](ctx context.Context, p *place, read func(context.Context) (T, error)) (T, error) {
	var out T
	err := retry.Do(ctx, patience, func(err error) bool { return framework.IsTransient(err) && p.session.Err() == nil },
		func(ctx context.Context) (err error) {
			out, err = read(ctx)
			return err
		})
	if lost := p.session.Err(); err != nil && lost != nil {
		err = lost
	}
	return out, err
}

func patience(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(time.Second, 50*time.Millisecond<<min(attempt, 5)), true
}
