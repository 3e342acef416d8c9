package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	line := lineup(children, l.rules.Block)
	if !slices.Contains(children, p.name) {
		return nil, errVanished // whoever is not in line is not first in it
	}
	if wrapped(append(line, p.member)) {
		return l.olderThan(ctx, p, line)
	}
	return inFront(line, p.member), nil
}

// inFront picks from a line those that are ahead of m.
func inFront(line []member, m member) []member {
	var ahead []member
	for _, other := range line {
		if before(other.seq, m.seq) {
			ahead = append(ahead, other)
		}
	}
	return ahead
}

// olderThan picks from a line those that were created before p, by the transactions that created them.
func (l *Line) olderThan(ctx context.Context, p *place, line []member) ([]member, error) {
	if err := l.confirm(ctx, p); err != nil {
		return nil, err
	}
	var older []member
	czxids := map[string]int64{}
	for _, m := range line {
		stat, err := patiently(ctx, p, func(ctx context.Context) (*zk.Stat, error) {
			return p.session.Exists(ctx, l.node(m.name))
		})
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if stat.Czxid < p.token {
			czxids[m.name] = stat.Czxid
			older = append(older, m)
		}
	}
	slices.SortFunc(older, func(a, b member) int { return cmp.Compare(czxids[a.name], czxids[b.name]) })
	return older, nil
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

// patiently makes single attempts at a read until one is answered: whoever has a place in line keeps it through an outage, as
// long as the session lasts, even where the caller repeats the whole acquire.
func patiently[T any](ctx context.Context, p *place, read func(context.Context) (T, error)) (T, error) {
	var out T
	err := retry.Do(retry.Ungoverned(ctx), patience, func(err error) bool { return framework.IsTransient(err) && p.session.Err() == nil },
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
