package barrier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// CountDown is a latch that opens once, when it was counted down n times. It stays open until it is
// deleted. Safe for concurrent use. Curator has no counterpart; Java:
// java.util.concurrent.CountDownLatch.
type CountDown struct {
	place
	n int

	mu        sync.Mutex
	uncertain []*count // of calls that failed without an answer
}

// NewCountDown returns the latch of n counts at path. It makes no request. It returns an error if c is
// nil or a zero value, for an invalid path, and if n is not between 1 and 5000.
func NewCountDown(c *framework.Client, path string, n int) (*CountDown, error) {
	at, err := newPlace(c, path)
	if err != nil {
		return nil, fmt.Errorf("new latch: %w", err)
	}
	if err := checkParties(n); err != nil {
		return nil, fmt.Errorf("new latch %s: %w", path, err)
	}
	return &CountDown{place: at, n: n}, nil
}

// count is one call of CountDown.
type count struct {
	id    string // the data of its node
	node  string // where it is; "": not chosen
	latch int64  // the czxid of the latch that the node is of
	sent  bool   // the node may have been created: no answer came
}

// CountDown counts once. On an open latch it does nothing. The latch is created if it is missing.
//
// CountDown lasts through lost connections and lost sessions. It counts once, whatever answers are
// lost. It fails when ctx ends, with framework.ErrClosed when the client is closed, with ErrParties if
// the latch was created for another number, and with what the servers refuse. After a failure
// framework.OutcomeOf says whether it may have counted. Then the next call of this CountDown, for
// whatever it is made, repeats the count instead of counting twice: so call it until it succeeds. If
// the latch is deleted during the call, CountDown returns nil.
func (l *CountDown) CountDown(ctx context.Context) error {
	const op = "count down latch"
	if err := l.begin(ctx, "CountDown"); err != nil {
		return &framework.Error{Op: op, Path: l.path, Outcome: framework.NotApplied, Err: err}
	}
	c := l.take()
	err := l.countOnce(ctx, c)
	for err != nil && l.outlasts(ctx, err) {
		err = l.countOnce(ctx, c)
	}
	if err == nil {
		return nil
	}
	outcome := framework.NotApplied
	if c.sent {
		outcome = framework.Unknown
		l.keep(c)
	}
	return &framework.Error{Op: op, Path: l.path, Outcome: outcome, Err: l.cause(ctx, err)}
}

// take returns a count that failed without an answer, or a new one.
func (l *CountDown) take() *count {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.uncertain) == 0 {
		return &count{id: newID()}
	}
	c := l.uncertain[0]
	l.uncertain = l.uncertain[1:]
	return c
}

func (l *CountDown) keep(c *count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uncertain = append(l.uncertain, c)
}

// countOnce returns nil if c is counted, or need not be.
func (l *CountDown) countOnce(ctx context.Context, c *count) error {
	for {
		now, err := l.read(ctx)
		switch {
		case c.sent && now.replaces(c.latch, err):
			return nil // it was deleted, and so was open
		case err != nil:
			return err
		case now == nil:
			if err := l.make(ctx); err != nil {
				return err
			}
			continue
		case now.gone || now.open():
			return nil
		case !c.sent:
			c.node, c.latch = l.child(now.name(l.choose(ctx, now.missing))), now.czxid
		}
		done, err := l.create(ctx, c)
		if done || err != nil {
			return err
		}
	}
}

// choices is the number of choices of one client.
type choices struct{ atomic.Uint64 }

// choose returns one of the missing numbers, so that programs that count at the same time seldom
// choose the same. A waiter waits for the highest one, and few counts wake it.
func (l *CountDown) choose(ctx context.Context, missing []int) int {
	calls := bridge.Local[choices](bridge.Of(l.client))
	var session int64
	if s, err := l.client.Session(ctx); err == nil {
		session = s.ID()
	}
	return missing[rand.New(rand.NewPCG(uint64(session), calls.Add(1))).IntN(len(missing))]
}

// create creates the node of a count. After a lost answer it is repeated at the same place. It
// reports whether c is counted; if not, and there is no error, the latch is to be read again.
func (l *CountDown) create(ctx context.Context, c *count) (done bool, err error) {
	_, err = l.client.Create(ctx, c.node, []byte(c.id))
	switch {
	case err == nil, ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return true, nil // without the latch there is nothing to count
	case !ctxerr.Answered(ctx, err, zk.ErrNodeExists):
		c.sent = c.sent || framework.OutcomeOf(err) == framework.Unknown
		return false, err
	}
	data, _, err := l.client.Get(ctx, c.node)
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return true, nil
	case err != nil:
		return false, err
	case string(data) == c.id:
		return true, nil
	}
	c.sent = false // the place is another count's, for good
	return false, nil
}
