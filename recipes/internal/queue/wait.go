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
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
)

// view is what a place has seen of its line.
type view struct {
	last, second member // the last of those who stand in our way, and the one before; without a name if there is none
	// final: when the only one ahead goes, nobody can be in our way. It was the first of all, and leaves none at its place.
	final bool
	watch *framework.Watch // on the last of them, if there is one already
	near  neighbour        // the last of them, if it is a neighbour
}

// clear reports whether nobody is in the way.
func (v view) clear() bool { return v.last.name == "" }

// add adds one more who stands in the way, the last of them.
func (v *view) add(m member) { v.last, v.second = m, v.last }

// next is for whom to wait.
func (v view) next(rules Rules) member {
	if rules.Replaced || v.second.name == "" || v.near.watch != nil {
		return v.last // if another can be at its place, there is another look to take whatever goes
	}
	return v.second
}

// over reports whether nobody is ahead when the next has gone.
func (v view) over() bool { return v.final || v.near.watch != nil && v.near.front.Load() }

// arrive waits until nobody is ahead of p. Without an alarm it does not wait.
func (p *place) arrive(ctx context.Context, a *alarm) (waited bool, err error) {
	waited, err = p.advance(ctx, a)
	if err == nil {
		p.front.Store(true)
	}
	return waited, err
}

func (p *place) advance(ctx context.Context, a *alarm) (waited bool, err error) {
	if p.first() {
		return false, nil
	}
	v, known := p.follow()
	if !known {
		v, err = p.look(ctx)
	}
	if err != nil || v.clear() {
		return false, err
	}
	if a == nil {
		return false, ErrBusy
	}
	a.start()
	return true, p.wait(ctx, v)
}

// wait waits until nobody is ahead of p any more.
func (p *place) wait(ctx context.Context, v view) error {
	for !v.clear() {
		gone, err := p.await(ctx, v)
		if err != nil {
			return Waited(ctx, err)
		}
		if gone && v.over() {
			return nil
		}
		if v, err = p.lookAgain(ctx, v, gone); err != nil {
			return Waited(ctx, err)
		}
	}
	return nil
}

// lookAgain reads the line after a view of it. If the second last is gone the last is watched at the same time: it has stayed the last,
// unless it is gone too. If that has become a neighbour meanwhile, there is nothing to read.
func (p *place) lookAgain(ctx context.Context, old view, gone bool) (v view, err error) {
	if !gone || old.next(p.line.rules) == old.last {
		return p.look(ctx)
	}
	if p.meet(&old); old.near.watch != nil {
		return old, nil
	}
	var last <-chan nodeRead
	bridge.OfSession(p.session).Together(func() { p.list, last = p.line.ask(p.session), p.startRead(old.last) })
	if v, err = p.look(ctx); v.last == old.last {
		v.watch = p.finishRead(ctx, last).watch
	}
	return v, err
}

// Waited says of an error that ended a wait for others that it was one.
func Waited(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", recipes.ErrNotAcquired, err)
	}
	return err
}

// look reads the line.
func (p *place) look(ctx context.Context) (view, error) {
	list, err := p.listed(ctx)
	if err != nil {
		return view{}, p.missed(ctx, err)
	}
	seen := p.survey(list.sorted(p.line.rules))
	if !seen.present {
		return view{}, ErrVanished // whoever is not in line is not first in it; what is left of the node is deleted all the same
	}
	if len(seen.doubtful) > 0 {
		older, left, err := p.olderThan(ctx, seen.doubtful)
		if err != nil {
			return view{}, err
		}
		for _, m := range older {
			seen.add(m)
		}
		if seen.clear() && left && p.line.rules.Replaced {
			return p.look(ctx) // for what is at the place of who has left
		}
	}
	seen.final = seen.isFinal(p)
	p.meet(&seen.view)
	return seen.view, nil
}

// listed waits for a list of the line that shows our node if it is there: the one that was asked for behind the create, or a new one.
func (p *place) listed(ctx context.Context) (*listing, error) {
	return Patiently(ctx, p.session, func(ctx context.Context) (*listing, error) {
		list := p.list
		if p.list = nil; list == nil {
			list = p.line.ask(p.session)
		}
		return list, list.wait(ctx, p.session)
	})
}

// olderThan picks from a line those that were created before p, by the transactions that created them. It also says whether any has left,
// of whom that cannot be told.
func (p *place) olderThan(ctx context.Context, line []member) (older []member, left bool, err error) {
	if err := p.confirm(ctx); err != nil {
		return nil, false, err
	}
	czxids := map[string]int64{}
	for _, m := range line {
		stat, err := Patiently(ctx, p.session, func(ctx context.Context) (*zk.Stat, error) {
			return p.session.Exists(ctx, p.line.node(m.name))
		})
		if errors.Is(err, zk.ErrNoNode) {
			left = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if stat.Czxid < p.token {
			czxids[m.name] = stat.Czxid
			older = append(older, m)
		}
	}
	slices.SortFunc(older, func(a, b member) int { return cmp.Compare(czxids[a.name], czxids[b.name]) })
	return older, left, nil
}

// await waits for the next of a view to go, or for a reason to look again. Gone means that it was deleted and we are still in line.
func (p *place) await(ctx context.Context, v view) (gone bool, err error) {
	watch, err := p.watchNext(ctx, v)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return false, err
	}
	if own := p.watchOwn(ctx); own != nil {
		return false, own
	}
	if watch == nil {
		// It was in line, and is not. We are: our watch would have fired before either answer that came after we had gone.
		return bridge.OfWatch(p.watch).Unbroken(), p.session.Err()
	}
	for {
		if err := p.rest(ctx, watch); err != nil {
			return false, err
		}
		if fired(watch) {
			// The server tells of deletions in their order. If ours came first, its watch has fired before.
			return watch.Event() == zk.EventNodeDeleted && !fired(p.watch), p.session.Err()
		}
	}
}

// watchNext watches for whom we wait, and our own node at the same time.
func (p *place) watchNext(ctx context.Context, v view) (watch *framework.Watch, err error) {
	next := v.next(p.line.rules)
	switch {
	case v.near.watch != nil:
		watch = v.near.watch
	case v.watch != nil && next == v.last:
		watch = v.watch
	case p.isWatched():
		watch, err = p.watchNode(ctx, next)
	default:
		watch, err = p.watchBoth(ctx, next)
	}
	return watch, err
}

// watchBoth watches somebody else's node and our own. What of our own is not answered is asked for again by whoever needs it.
func (p *place) watchBoth(ctx context.Context, m member) (*framework.Watch, error) {
	var ahead, own <-chan nodeRead
	bridge.OfSession(p.session).Together(func() { ahead, own = p.startRead(m), p.startRead(p.member) })
	other := p.finishRead(ctx, ahead)
	_ = p.note(ctx, p.finishRead(ctx, own))
	if other.err == nil || ctxerr.Answered(ctx, other.err, zk.ErrNoNode) {
		return other.watch, other.err
	}
	return p.watchNode(ctx, m)
}

// watchNode watches somebody else's node.
func (p *place) watchNode(ctx context.Context, m member) (*framework.Watch, error) {
	return Patiently(ctx, p.session, func(ctx context.Context) (*framework.Watch, error) { return p.readNode(ctx, m) })
}

func (p *place) readNode(ctx context.Context, m member) (*framework.Watch, error) {
	_, _, w, err := p.session.GetW(ctx, p.line.node(m.name))
	return w, err
}

// rest waits until one of the watches, or that of our own node, has fired, or the session is over.
func (p *place) rest(ctx context.Context, watches ...*framework.Watch) error {
	if err := p.watchOwn(ctx); err != nil {
		return err
	}
	return untilAny(ctx, append(watches, p.watch))
}

func fired(w *framework.Watch) bool { return w.Event() != 0 }

// isWatched reports whether we hear if our own node goes.
func (p *place) isWatched() bool { return p.watch != nil && !fired(p.watch) }

// watchOwn watches our own node, so that we hear if it goes.
func (p *place) watchOwn(ctx context.Context) error {
	if p.isWatched() {
		return nil
	}
	_, err := Patiently(ctx, p.session, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.readOwn(ctx) })
	return p.missed(ctx, err)
}

// nodeRead is what was read of a node, with a watch.
type nodeRead struct {
	data  []byte
	stat  *zk.Stat
	watch *framework.Watch
	err   error
}

// startRead reads a node with a watch, and does not wait for the answer.
func (p *place) startRead(m member) <-chan nodeRead {
	read := make(chan nodeRead, 1)
	bridge.OfSession(p.session).StartGetW(p.line.node(m.name), func(data []byte, stat *zk.Stat, w *framework.Watch, err error) {
		read <- nodeRead{data, stat, w, err}
	})
	return read
}

// finishRead waits for the answer.
func (p *place) finishRead(ctx context.Context, read <-chan nodeRead) nodeRead {
	select {
	case r := <-read:
		return r
	case <-ctx.Done():
		return nodeRead{err: ctxerr.Of(ctx)}
	case <-p.session.Done():
		return nodeRead{err: p.session.Err()}
	}
}

// readOwn reads our own node with a watch. Its Stat also tells our token, and that the node is ours.
func (p *place) readOwn(ctx context.Context) error {
	var own nodeRead
	own.data, own.stat, own.watch, own.err = p.session.GetW(ctx, p.path())
	return p.note(ctx, own)
}

// note takes over what was read of our node.
func (p *place) note(ctx context.Context, own nodeRead) error {
	if own.err != nil {
		return vanished(ctx, own.err)
	}
	if err := owned(p.session, own.stat); err != nil {
		return err
	}
	p.watch, p.data, p.version, p.token = own.watch, own.data, own.stat.Version, own.stat.Czxid
	p.settle()
	return nil
}

// missed notes that our node is not there any more, if that is what err says.
func (p *place) missed(ctx context.Context, err error) error {
	err = vanished(ctx, err)
	p.gone = p.gone || errors.Is(err, ErrVanished) && ctx.Err() == nil
	return err
}

// Patiently makes single attempts at something that may be repeated until there is an answer: whoever has a place in line keeps it
// through an outage, as long as the session lasts, even where the caller repeats the whole acquire.
func Patiently[T any](ctx context.Context, s *framework.Session, read func(context.Context) (T, error)) (T, error) {
	var out T
	err := retry.Do(retry.Ungoverned(ctx), patience, func(err error) bool { return framework.IsTransient(err) && s.Err() == nil },
		func(ctx context.Context) (err error) {
			out, err = read(ctx)
			return err
		})
	if lost := s.Err(); err != nil && lost != nil {
		err = lost
	}
	return out, err
}

func patience(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(time.Second, 50*time.Millisecond<<min(attempt, 5)), true
}

// untilAny waits until one of the watches has fired, at most three, or ctx has ended.
func untilAny(ctx context.Context, watches []*framework.Watch) error {
	var fired [3]<-chan struct{}
	for i, w := range watches {
		if w != nil {
			fired[i] = w.Fired()
		}
	}
	select {
	case <-fired[0]:
	case <-fired[1]:
	case <-fired[2]:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return nil
}
