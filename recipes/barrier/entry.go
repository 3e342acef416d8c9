package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/internal/signal"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Entry is a member inside a double barrier, from Double.Enter to Leave. It ends early with the
// session, or when another client deletes its node: the other members then see that it has left.
// Safe for concurrent use.
type Entry struct {
	member *member // nil in the zero value
	stop   context.CancelFunc

	mu    sync.Mutex
	err   error // why it has ended
	ended chan struct{}
	round *round // nil before the first step of Leave
}

// round is what was there when the member began to leave. It does not change.
type round struct {
	others []string // the other members, without those that are known not to be inside
	ready  int64    // the czxid of the node ready; 0: there was none
}

func newEntry(m *member) *Entry {
	ctx, stop := context.WithCancel(context.Background())
	e := &Entry{member: m, stop: stop, ended: make(chan struct{})}
	if !bridge.OfSession(m.session).Go(func() { e.follow(ctx) }) {
		e.end(m.session.Err())
	}
	return e
}

// follow watches the member's node until the entry ends.
func (e *Entry) follow(ctx context.Context) {
	for {
		watch, err := queue.RetryInSession(ctx, e.member.session, e.watchNode)
		if err != nil {
			if ctx.Err() == nil {
				e.end(err)
			}
			return
		}
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return
		}
	}
}

func (e *Entry) watchNode(ctx context.Context) (*framework.Watch, error) {
	_, _, watch, err := e.member.session.GetW(ctx, e.member.own())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = fmt.Errorf("%w: %s", ErrNodeDeleted, e.member.own())
	}
	return watch, err
}

// end ends the entry. Only the first reason counts.
func (e *Entry) end(reason error) {
	if e.setReason(reason) && !errors.Is(reason, ErrLeft) {
		e.logLoss(reason)
	}
}

func (e *Entry) setReason(reason error) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	e.err = reason
	close(e.ended)
	e.stop()
	return true
}

// logLoss logs what the end of a lost hold of a lock logs.
func (e *Entry) logLoss(reason error) {
	level := zap.WarnLevel
	if errors.Is(reason, framework.ErrClosed) {
		level = zap.InfoLevel
	}
	m := e.member
	m.session.Logger().Named("double-barrier").Log(level, "entry ended", zap.String("path", m.own()),
		logfield.Session(m.session.ID()), zap.Error(reason))
}

func (e *Entry) reason() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Done returns a channel that is closed when the entry ends: by Leave, with the session, with the
// client, or when another client deletes its node. A suspended connection does not end it.
func (e *Entry) Done() <-chan struct{} {
	if e.member == nil {
		return signal.Closed
	}
	return e.ended
}

// Err returns nil until the entry has ended, and then the reason: ErrLeft after Leave was called;
// framework.ErrSessionLost; framework.ErrClosed; ErrNodeDeleted; or framework.ErrZeroValue. It compares
// clocks when it is called, so it can report a lost session before Done is closed.
func (e *Entry) Err() error {
	if e.member == nil {
		return fmt.Errorf("%w: barrier.Entry", framework.ErrZeroValue)
	}
	if lost := e.member.session.Err(); lost != nil {
		e.end(lost)
	}
	return e.reason()
}

// Leave ends the entry, and waits until all other members that are inside now have left. Members that
// come later are not waited for, so a fast one can enter the next round.
//
// Leave fails when ctx ends: then the member has left, its node is deleted, in the background if
// necessary, and another call of Leave waits again. It fails with the error of Err if the entry has
// ended early, also while it waits: then the others may still be inside. It fails with what the servers
// refuse. It returns framework.ErrZeroValue for the zero value. Curator: leave.
func (e *Entry) Leave(ctx context.Context) error {
	if e.member == nil {
		return fmt.Errorf("leave: %w: barrier.Entry", framework.ErrZeroValue)
	}
	m := e.member
	if ctx == nil {
		return fmt.Errorf("leave double barrier %s: %w", m.path, framework.ErrNilContext)
	}
	_ = e.Err() // notes that the session is lost
	e.end(ErrLeft)
	if err := e.reason(); !errors.Is(err, ErrLeft) {
		return m.failed(ctx, "leave double barrier", err)
	}
	err := e.depart(ctx)
	if err != nil {
		bridge.OfSession(m.session).Go(e.giveUp)
	}
	return m.failed(ctx, "leave double barrier", err)
}

// depart waits until the others have left. As in Curator, the lowest member keeps its node until it
// is the last, and the others delete theirs and wait for the lowest.
func (e *Entry) depart(ctx context.Context) error {
	for {
		rest, err := queue.RetryInSession(ctx, e.member.session, e.departStep)
		if err != nil || rest.members == 0 {
			return err
		}
		if err := e.member.await(ctx, rest.watch, nil); err != nil {
			return fmt.Errorf("had seen %d other members inside: %w", rest.members, err)
		}
	}
}

// rest is what a member that leaves waits for.
type rest struct {
	members int              // that have not left
	watch   *framework.Watch // of one of them; nil if there is none
}

// departStep makes the next requests. It returns what the member waits for.
func (e *Entry) departStep(ctx context.Context) (rest, error) {
	m := e.member
	for {
		others, here, err := e.present(ctx)
		if err == nil && len(others) == 0 {
			left, err := e.finish(ctx, here)
			if left || err != nil {
				return rest{}, err
			}
			continue
		}
		if err != nil {
			return rest{}, err
		}
		lowest, awaited := here && m.name < others[0], others[0]
		if lowest {
			awaited = others[len(others)-1]
		}
		_, stat, watch, err := m.session.GetW(ctx, m.child(awaited))
		switch {
		case ctxerr.Answered(ctx, err, zk.ErrNoNode):
			continue
		case err != nil:
			return rest{}, err
		case !e.isInside(stat):
			e.forget(awaited)
			continue
		case here && !lowest:
			err = e.deleteNode(ctx)
		}
		return rest{len(others), watch}, err
	}
}

// present returns those of the other members of the round that have not left, in order. here
// reports whether the member's own node exists.
func (e *Entry) present(ctx context.Context) (others []string, here bool, err error) {
	var open *zk.Stat
	begun := e.leaving()
	if begun == nil {
		// The client's server may not know yet of a member that has entered through another one.
		if err := e.member.session.Sync(ctx, e.member.path); err != nil {
			return nil, false, err
		}
		if open, err = e.readyNode(ctx); err != nil {
			return nil, false, err
		}
	}
	names, _, err := e.member.session.Children(ctx, e.member.path)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, false, err
	}
	if begun == nil {
		begun = e.beginLeaving(e.member.othersOf(names), open)
	}
	others = slices.DeleteFunc(slices.Clone(begun.others), func(name string) bool {
		return !slices.Contains(names, name)
	})
	return others, slices.Contains(names, e.member.name), nil
}

// isInside reports whether another member with this Stat is inside: it is older than the node ready, or has entered
// late. Others wait for the next round, maybe for this member. If a member of kazoo has deleted the node ready, nothing
// tells, and they count as inside.
func (e *Entry) isInside(other *zk.Stat) bool {
	ready := e.leaving().ready
	return other.Version > 0 || other.Czxid < ready || ready == 0 && !e.member.late
}

// forget waits no longer for a member, which is not inside.
func (e *Entry) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(e.round.others), func(other string) bool { return other == name })
	e.round = &round{others, e.round.ready}
}

// leaving returns what was there when the member began to leave, or nil.
func (e *Entry) leaving() *round {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.round
}

func (e *Entry) beginLeaving(others []string, open *zk.Stat) *round {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.round == nil {
		e.round = &round{others: others}
		if open != nil {
			e.round.ready = open.Czxid
		}
	}
	return e.round
}

// readyNode returns the Stat of the node ready, or nil.
func (e *Entry) readyNode(ctx context.Context) (*zk.Stat, error) {
	stat, err := e.member.session.Exists(ctx, e.member.ready())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	return stat, err
}

func (e *Entry) deleteNode(ctx context.Context) error {
	err := e.member.session.Delete(ctx, e.member.own(), -1)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// finish deletes the node ready of the round, together with the member's node if that is still
// here. So a member that comes does not find the one without the other. It reports whether nothing is
// left; if not, it is to be looked at again.
func (e *Entry) finish(ctx context.Context, here bool) (left bool, err error) {
	m := e.member
	stat, err := e.readyNode(ctx)
	if err != nil {
		return false, err
	}
	open := stat != nil && stat.Czxid == e.leaving().ready
	switch {
	case !here && !open:
		return true, nil
	case !here:
		err = e.deleteReady(ctx, stat.Version)
	case open:
		_, err = m.session.Multi(ctx, framework.DeleteOp(m.own(), -1), framework.DeleteOp(m.ready(), stat.Version))
	default:
		err = m.session.Delete(ctx, m.own(), -1)
	}
	if isChanged(ctx, err) {
		return false, nil
	}
	return err == nil, err
}

// deleteReady deletes the node ready when no member's node is left that ties it to the round: its
// lowest member has died. That of the next round may have the same version by now. So the node is
// written first, which tells which one it is and makes its version one that a new node does not have.
func (e *Entry) deleteReady(ctx context.Context, version int32) error {
	m := e.member
	results, err := m.session.Multi(ctx, framework.SetOp(m.ready(), m.data, version),
		framework.SetOp(m.ready(), m.data, version+1))
	if err != nil || results[0].Stat.Czxid != e.leaving().ready {
		return err
	}
	return m.session.Delete(ctx, m.ready(), version+2)
}

// giveUp deletes the member's node, and the node ready if no member of the round is left.
func (e *Entry) giveUp() {
	m := e.member
	m.abandon()
	ctx, cancel := context.WithTimeout(context.Background(), m.session.Timeout())
	defer cancel()
	_, _ = queue.RetryInSession(ctx, m.session, func(ctx context.Context) (*framework.Watch, error) {
		others, here, err := e.present(ctx)
		if err == nil && here {
			err = e.deleteNode(ctx)
		}
		if err == nil && len(others) == 0 {
			_, err = e.finish(ctx, false)
		}
		return nil, err
	})
}
