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

// Term is one period of leadership. It ends once, by Resign or by a loss, and is never valid again:
// the next period is another Term. Safe for concurrent use. The zero value is a term that has ended,
// with an error that matches recipes.ErrNotHeld and framework.ErrZeroValue.
type Term struct {
	hold   *ownership.Hold
	record *recordView // nil: there is no term record

	mu       sync.Mutex
	resigned chan struct{} // closed when Resign returns; nil before it is called
	deleted  bool          // Resign has deleted the node
}

func (t *Term) held() *ownership.Hold { return t.hold }

// valid reports whether there is a term, and it has not ended.
func (t *Term) valid() bool { return t != nil && t.Err() == nil }

// Context returns a context that ends with parent or with the term. context.Cause then returns the
// reason. See recipes.Hold.Context.
func (t *Term) Context(parent context.Context) context.Context { return t.held().Context(parent) }

// Done returns a channel that is closed when the term ends, however it ends.
func (t *Term) Done() <-chan struct{} { return t.held().Done() }

// Err returns nil while the term is valid, and then why it ended: recipes.ErrNotHeld after Resign;
// framework.ErrSessionLost; framework.ErrClosed; recipes.ErrNodeDeleted; framework.ErrSuspended, if
// the client's loss policy is Strict. Err checks the deadline itself, so it can report the loss
// before Done is closed. Curator: hasLeadership, which notices less.
func (t *Term) Err() error { return t.held().Err() }

// Token returns the fencing token: the czxid of the candidate's node. A later leader has a larger
// one. It stays readable after the end of the term. It is 0 in the zero value.
func (t *Term) Token() int64 { return t.held().Token() }

// Path returns the path of the candidate's node, and "" for the zero value. Curator:
// LeaderLatch.getOurPath, getLastPathIsLeader.
func (t *Term) Path() string { return t.held().Path() }

// ValidUntil returns the local time at which the term ends unless the ZooKeeper leader answers
// again before: see recipes.Hold.ValidUntil. It is the zero Time once the term has ended.
func (t *Term) ValidUntil() time.Time { return t.held().ValidUntil() }

// Guard applies ops in one transaction, only if the candidate's node still exists: see
// recipes.Hold.Guard. It is not repeated after an unknown outcome: read the data before writing
// again.
func (t *Term) Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error) {
	return t.held().Guard(ctx, ops...)
}

// Revoked returns a channel that is closed when another client asks for the leadership, with
// recipes.Revoke. It is a request: the leader should resign soon. See recipes.Hold.Revoked. Only
// the candidates of an Election can be asked. The channel of the zero value is nil.
func (t *Term) Revoked() <-chan struct{} { return t.held().Revoked() }

// Resign ends the term, first Done and the contexts, then deletes the node, so that the next
// candidate leads at once, even if the function of Election.Run has not returned yet. It returns
// what recipes.Hold.Release returns, and takes as long. With WithLockDelay it takes up to a third
// of the session timeout longer. It returns recipes.ErrNotHeld if it was called before.
//
// Then the candidate stands for election again, at the end of the queue: a Latch at once, an
// Election when the function has returned.
func (t *Term) Resign() error {
	if t.hold == nil {
		return t.hold.Release()
	}
	done, first := t.beginResign()
	if !first {
		<-done
		return fmt.Errorf("resign %s: %w", t.Path(), recipes.ErrNotHeld)
	}
	defer close(done)
	err := t.release()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted = err == nil
	return err
}

func (t *Term) release() error {
	if t.record == nil {
		return t.hold.Release()
	}
	return t.record.resign()
}

// beginResign returns the channel to close when Resign returns, and reports whether this is the
// first call.
func (t *Term) beginResign() (done chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resigned != nil {
		return t.resigned, false
	}
	t.resigned = make(chan struct{})
	return t.resigned, true
}

// awaitResign waits for Resign, if it has been called, until ctx ends.
func (t *Term) awaitResign(ctx context.Context) {
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

// sessionOfNode waits for Resign as awaitResign does. It returns the session that may still have
// the node, or nil if the node is deleted.
func (t *Term) sessionOfNode(ctx context.Context) *framework.Session {
	t.awaitResign(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return nil
	}
	return t.hold.Session()
}
