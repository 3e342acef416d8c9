package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
)

// tenure is the ownership of something: what the levels share.
type tenure struct {
	estate
	begun   time.Time
	revoked chan struct{} // closed by heed

	mu     sync.Mutex
	levels map[*Hold]struct{} // those that are held
	heirs  Heirs              // nil if there are none
	idle   bool               // the only level is a Keeper's
	guards int                // guarded transactions under way
	doubt  bool               // one of them may still be applied
	err    error              // why it ended
}

// estate is what a tenure is the ownership of: lock nodes, or holds of other locks.
type estate interface {
	session() *framework.Session // of the nodes, or of some of them
	locks() []Lock
	paths() []string // of its own nodes
	parts() []*Hold
	validUntil() time.Time
	// trouble is nil while the estate can be relied on, and then why not.
	trouble() error
	// forsake takes away what is left of an estate whose tenure has ended for a reason that nobody wanted.
	forsake(reason error)
	// giveUp takes away an estate that was released.
	giveUp() error
	// attend watches for requests to give the estate back, from now on.
	attend()
	// rest ends what watches over the estate, once, when the tenure is over. It is called with mu held.
	rest()
	// carry puts h into a context, for re-entry.
	carry(ctx context.Context, h *Hold) context.Context
	// measure tells of the end of a tenure, once: err is why it ended, or what became of its release.
	measure(held time.Duration, err error)
}

func newTenure(e estate) *tenure {
	return &tenure{estate: e, begun: time.Now(), revoked: make(chan struct{}), levels: map[*Hold]struct{}{}}
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

// leave ends the level h by its owner's will. If this was the last level, what becomes of it is to be told. The error is why h had ended
// before.
func (t *tenure) leave(h *Hold) (end ending, tell func(error), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.released {
		return others, nil, ErrNotHeld
	}
	h.released = true
	if t.err != nil {
		return others, nil, t.err
	}
	delete(t.levels, h)
	h.finish(ErrNotHeld)
	if len(t.levels) > 0 {
		return others, nil, nil
	}
	tell = t.teller()
	if t.passOn() {
		return passed, tell, nil
	}
	t.err = ErrNotHeld
	t.rest()
	return vacant, tell, nil
}

// teller measures the hold that ends now, once it is called with what came of it. It is called with mu held.
func (t *tenure) teller() func(error) {
	if t.idle {
		return func(error) {}
	}
	held := time.Since(t.begun)
	return func(err error) { t.measure(held, err) }
}

// end ends all levels, for a reason that nobody wanted.
func (t *tenure) end(reason error) {
	if rest := t.lose(reason); rest != nil {
		rest()
	}
}

// lose ends all levels, and those of what they are parts of. What it returns does the rest, which calls other people's code; nil if the
// tenure had ended before.
func (t *tenure) lose(reason error) (rest func()) {
	wholes, tell := t.strike(reason)
	if tell == nil {
		return nil
	}
	var theirs []func()
	for _, whole := range wholes {
		if rest := whole.lose(reason); rest != nil {
			theirs = append(theirs, rest)
		}
	}
	return func() {
		defer t.vacate()
		for _, rest := range theirs {
			rest()
		}
		t.forsake(reason)
		tell(reason)
	}
}

// strike also says of what the levels were parts, and to whom to tell the reason; nil if the tenure had ended before.
func (t *tenure) strike(reason error) (wholes []*tenure, tell func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return nil, nil
	}
	t.err = reason
	t.rest()
	for h := range t.levels {
		if h.whole != nil {
			wholes = append(wholes, h.whole)
		}
		h.finish(reason)
	}
	return wholes, t.teller()
}

// check ends the tenure if what it stands on is gone, which it finds out by the clock.
func (t *tenure) check() {
	if err := t.trouble(); err != nil {
		t.end(err)
	}
}

// relinquish gives the estate up after the last level.
func (t *tenure) relinquish(tell func(error)) error {
	defer t.vacate()
	err := t.giveUp()
	tell(err)
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

// heed tells whoever holds the estate that somebody wants it back.
func (t *tenure) heed() {
	wholes, first := t.noteRequest()
	if !first {
		return
	}
	for _, whole := range wholes {
		whole.heed()
	}
	t.toHeirs(Heirs.Wanted)
}

func (t *tenure) noteRequest() (wholes []*tenure, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if isClosed(t.revoked) {
		return nil, false
	}
	close(t.revoked)
	for h := range t.levels {
		if h.whole != nil {
			wholes = append(wholes, h.whole)
		}
	}
	return wholes, true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
