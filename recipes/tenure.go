package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
)

// RevokeMessage is what a lock node is set to by whoever wants the lock back. Curator's, to the byte. It is for recipes.
const RevokeMessage = "__REVOKE__"

// Grant is a lock node that has come to the front of its line. It is for recipes.
type Grant struct {
	Session *framework.Session // that the node belongs to
	Footing framework.Footing  // what the hold stands on; it was good when nobody was ahead
	Recipe  string             // what measurements call the kind of lock
	Key     any                // of the lock, for re-entry: comparable, one for each lock of each client
	Node    string             // the node's path
	Token   int64              // its czxid
	Watch   *framework.Watch   // for its data, if there is one already
	Data    []byte             // what was read with Watch
}

// NewHold makes the first level of ownership of a lock node. It is for recipes.
func NewHold(g Grant) *Hold {
	t := &tenure{Grant: g, begun: time.Now(), revoked: make(chan struct{}), wanted: make(chan struct{}), levels: map[*Hold]struct{}{}}
	t.ctx, t.over = context.WithCancel(context.Background())
	t.heed(g.Data)
	h := t.newLevel()
	if !g.Session.Go(t.monitor) {
		t.check()
	}
	return h
}

// tenure is the ownership of one lock node: what the levels share.
type tenure struct {
	Grant
	begun   time.Time
	ctx     context.Context // ends with the tenure
	over    context.CancelFunc
	revoked chan struct{} // closed by heed
	wanted  chan struct{} // closed by watch
	once    sync.Once     // of wanted

	mu     sync.Mutex
	levels map[*Hold]struct{} // those that are held
	heirs  Heirs              // nil if there are none
	guards int                // guarded transactions under way
	doubt  bool               // one of them may still be applied
	err    error              // why it ended
}

// newLevel is called with mu held, or before anybody else knows of t.
func (t *tenure) newLevel() *Hold {
	h := &Hold{tenure: t, done: make(chan struct{})}
	t.levels[h] = struct{}{}
	return h
}

// enter adds a level to the ownership that h is one of, unless h is over.
func (t *tenure) enter(h *Hold) (*Hold, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.levels[h]; !held || t.err != nil {
		return nil, false
	}
	return t.newLevel(), true
}

// ending is what comes of a level that is left.
type ending int

const (
	others ending = iota // there are other levels
	passed               // it was the last, and somebody else has the node now
	vacant               // it was the last, and the tenure is over
)

// leave ends the level h by its owner's will. It also says for how long the lock was held, if this was the last level. The error is why h
// had ended before.
func (t *tenure) leave(h *Hold) (end ending, held time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.released {
		return others, 0, ErrNotHeld
	}
	h.released = true
	if t.err != nil {
		return others, 0, t.err
	}
	delete(t.levels, h)
	h.finish(ErrNotHeld)
	if len(t.levels) > 0 {
		return others, 0, nil
	}
	held = time.Since(t.begun)
	if t.passOn() {
		return passed, held, nil
	}
	t.err = ErrNotHeld
	t.over()
	return vacant, held, nil
}

// end ends all levels, for a reason that nobody wanted.
func (t *tenure) end(reason error) {
	if t.strike(reason) {
		if errors.Is(reason, framework.ErrSuspended) {
			t.Session.DeleteLater(t.Node) // the session lives, and so does the node
		}
		defer t.vacate()
		t.measure(time.Since(t.begun), reason)
		t.Session.Logger().Warn("hold ended", zap.String("path", t.Node), zap.Int64("session", t.Session.ID()),
			zap.Int64("token", t.Token), zap.Error(reason))
	}
}

func (t *tenure) strike(reason error) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	t.err = reason
	t.over()
	for h := range t.levels {
		h.finish(reason)
	}
	return true
}

// check ends the tenure if what it stands on is gone, which it finds out by the clock.
func (t *tenure) check() {
	if err := t.Footing.Err(); err != nil {
		t.end(err)
	}
}

// giveUp deletes the node after the last level.
func (t *tenure) giveUp(held time.Duration) error {
	defer t.vacate()
	err := t.deleteNode()
	t.measure(held, err)
	return err
}

// guard notes a guarded transaction of h, until the returned function is called with its error; false if h is over. Such a transaction is
// applied while the node exists, so the node must not go to somebody else before it is known what became of it.
func (t *tenure) guard(h *Hold) (done func(error), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.levels[h]; !held || t.err != nil {
		return nil, false
	}
	t.guards++
	return t.guarded, true
}

func (t *tenure) guarded(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.guards--
	t.doubt = t.doubt || framework.OutcomeOf(err) == framework.Unknown
}

// deleteNode takes the node away. A node that is gone already was deleted by somebody else while we held it. A session that
// ends only now is no loss, so the error must not look like one.
func (t *tenure) deleteNode() error {
	ctx, cancel := context.WithTimeout(context.Background(), t.Session.Timeout())
	defer cancel()
	err := t.Session.DeleteGuaranteed(ctx, t.Node)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("release %s: %w", t.Node, ErrNodeDeleted)
	case errors.Is(err, framework.ErrSessionLost), errors.Is(err, framework.ErrClosed):
		return fmt.Errorf("release %s: %w: %v", t.Node, ErrReleasePending, err)
	}
	return fmt.Errorf("release %s: %w: %w", t.Node, ErrReleasePending, err)
}

// watch asks for the node to be watched now.
func (t *tenure) watch() { t.once.Do(func() { close(t.wanted) }) }

const (
	// watchAfter is how long a hold must last for its node to be watched unasked: most are over by then and save the request.
	watchAfter = 100 * time.Millisecond
	// watchAgain is the pause after a failed attempt to watch.
	watchAgain = time.Second
)

// monitor ends the tenure when the session ends or the node is deleted, and notices requests to give the lock back.
func (t *tenure) monitor() {
	timer := time.NewTimer(watchAfter)
	defer timer.Stop()
	wanted := t.wanted
	var fired <-chan struct{}
	if t.Watch != nil {
		fired = t.Watch.Fired()
	}
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.Footing.Gone():
			t.check()
			return
		case <-wanted:
			wanted = nil
		case <-timer.C:
		case <-fired:
		}
		if fired != nil && !isClosed(fired) {
			continue // it is being watched
		}
		if fired = t.look(); fired == nil {
			timer.Reset(watchAgain)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// look reads the node with a watch and acts on what it sees. Nil means that the node is not watched.
func (t *tenure) look() (fired <-chan struct{}) {
	data, stat, watch, err := t.Session.GetW(t.ctx, t.Node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		t.end(ErrNodeDeleted)
		return nil
	case err != nil:
		return nil
	case stat.EphemeralOwner != t.Session.ID():
		t.end(fmt.Errorf("%w: it belongs to session %#x now", ErrNodeDeleted, stat.EphemeralOwner))
		return nil
	}
	t.heed(data)
	return watch.Fired()
}

// heed notices a request to give the lock back. It is called by monitor only, once there is one.
func (t *tenure) heed(data []byte) {
	if string(data) == RevokeMessage && !isClosed(t.revoked) {
		close(t.revoked)
	}
}
