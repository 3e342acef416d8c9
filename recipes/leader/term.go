package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Term is one period of leadership. It ends once, by Resign or because it was lost, and never comes back: the next one is another Term.
// Safe for concurrent use. The zero value and nil are terms that have ended.
type Term struct {
	hold *ownership.Hold
	page *page // nil: there is no ledger

	mu       sync.Mutex
	resigned chan struct{} // closed when Resign is done; nil before it is called
	gone     bool          // it has deleted the node
}

func (t *Term) held() *ownership.Hold {
	if t == nil {
		return nil
	}
	return t.hold
}

// Context returns a context that ends with parent or with the term, whichever is first; context.Cause then tells why. See
// recipes.Hold.Context.
func (t *Term) Context(parent context.Context) context.Context { return t.held().Context(parent) }

// Done is closed when the term ends, however it ends.
func (t *Term) Done() <-chan struct{} { return t.held().Done() }

// Err is nil while the term is valid, and then why it ended: recipes.ErrNotHeld after Resign; framework.ErrSessionLost;
// framework.ErrClosed; recipes.ErrNodeDeleted; framework.ErrSuspended, if the client's loss policy is Strict. If the time has
// run out without anybody noticing, asking ends the term. Curator: hasLeadership, which notices less.
func (t *Term) Err() error { return t.held().Err() }

// Token is the fencing token: the czxid of the candidate's node. A later leader has a larger one. It stays readable after the end; 0 in
// the zero value.
func (t *Term) Token() int64 { return t.held().Token() }

// Path is the path of the candidate's node; "" in the zero value. Curator: LeaderLatch.getOurPath, getLastPathIsLeader.
func (t *Term) Path() string { return t.held().Path() }

// ValidUntil is how long the term can be relied on from what is known now: see recipes.Hold.ValidUntil. The zero Time once the term has
// ended.
func (t *Term) ValidUntil() time.Time { return t.held().ValidUntil() }

// Guard applies ops in one transaction, only while the candidate's node exists: see recipes.Hold.Guard. It is not repeated after an unknown
// outcome: read what was to be written before doing it again.
func (t *Term) Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error) {
	return t.held().Guard(ctx, ops...)
}

// Revoked is closed when somebody asks for the leadership, with mutex.Revoke on the node of an Election. It is a request: the leader
// should resign soon. Nobody should ask a Latch: the request is written to the node, at which Curator's LeaderLatch stops to
// watch it. Nil in the zero value.
func (t *Term) Revoked() <-chan struct{} { return t.held().Revoked() }

// Resign ends the term, first Done and the contexts, then deletes the node, so that the next candidate leads at once: also while the
// function of Election.Run has not returned yet. It returns what recipes.Hold.Release returns, and takes as long, with WithLockDelay
// a third of the session timeout longer at most; recipes.ErrNotHeld if it has been called before. Then the candidate stands again, at the
// end of the line: a Latch at once, an Election when the function has returned.
func (t *Term) Resign() error {
	if t == nil {
		return recipes.ErrNotHeld
	}
	done, first := t.resign()
	if !first {
		<-done
		return fmt.Errorf("resign %s: %w", t.Path(), recipes.ErrNotHeld)
	}
	defer close(done)
	err := t.release()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = err == nil
	return err
}

func (t *Term) release() error {
	if t.page == nil {
		return t.hold.Release()
	}
	return t.page.resign()
}

// resign also says whether it was called for the first time.
func (t *Term) resign() (done chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resigned != nil {
		return t.resigned, false
	}
	t.resigned = make(chan struct{})
	return t.resigned, true
}

// settle waits for Resign, if it has been called, unless ctx ends first.
func (t *Term) settle(ctx context.Context) {
	t.mu.Lock()
	resigned := t.resigned
	t.mu.Unlock()
	if resigned == nil {
		return
	}
	select {
	case <-resigned:
	case <-ctx.Done():
	}
}

// remains is the session that may still have the node when Resign, if it has been called, is done; nil if it is gone.
func (t *Term) remains(ctx context.Context) *framework.Session {
	if t == nil {
		return nil
	}
	t.settle(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return nil
	}
	return t.hold.Session()
}
