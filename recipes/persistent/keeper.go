package persistent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes/internal/pause"
	"github.com/docent-zk/docent/retry"
)

// keeper makes the requests of a Node. Only the Node's goroutine uses it.
//
// Reads end with the context of the Node. Creates, writes and deletions do not: a request whose
// answer is not waited for has an unknown outcome. They are attempted once, and the node is read
// before they are repeated, because it may be another client's by then.
type keeper struct {
	*Node
	owner
	seenIn   int64     // the session in which the node has been there
	written  int       // the number of the data that the node has had; -1: none
	blocked  time.Time // since when a node of another owner is at the path; zero: there is none
	touched  time.Time // when the data was last written
	repairs  int       // in a row, of what other clients have done to the node
	repaired time.Time // the last time
	failures int       // in a row
}

func newKeeper(n *Node) *keeper {
	k := &keeper{Node: n, owner: owner{kind: n.cfg}, written: -1}
	if !n.cfg.sequential {
		k.name = n.path
	}
	return k
}

// run keeps the node until ctx ends, the client is closed, or an error does not pass. Then it
// deletes the node. before is the last Node of the place, or nil.
func (k *keeper) run(ctx context.Context, before *Node) {
	defer close(k.ended)
	defer k.leavePlace()
	defer k.setRemoved(errGoroutineEnded)
	reason := errGoroutineEnded
	defer k.remove()
	defer func() { k.finish(reason) }()
	if before != nil {
		<-before.ended
		k.inherit(before.keeper.owner)
	}
	reason = k.keep(ctx)
}

// keep makes the node as it should be, and follows its changes.
func (k *keeper) keep(ctx context.Context) error {
	for {
		err := k.step(ctx)
		switch {
		case ctx.Err() != nil:
			return k.closedBy(ctx)
		case err == nil:
			k.failures = 0
			continue
		case !isTransient(err):
			return fmt.Errorf("keep %s: %w", k.path, err)
		}
		k.pauseAfterFailure(ctx, "the node cannot be kept now: trying again", err)
	}
}

func (k *keeper) pauseAfterFailure(ctx context.Context, message string, err error) {
	if k.failures == 0 {
		k.log.Warn(message, zap.Error(err))
	}
	k.pause(ctx, pause.After(k.failures))
	k.failures++
}

// pause waits for d, or until ctx ends or the client is closed.
func (k *keeper) pause(ctx context.Context, d time.Duration) {
	k.await(ctx, d, nil, nil)
}

// await waits until changed or other is closed, d has passed, ctx ends or the client is closed.
func (k *keeper) await(ctx context.Context, d time.Duration, changed <-chan struct{}, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
	case <-k.client.Done():
	}
}

// step reads the node. If it is not as it should be, step makes a request to that end. Otherwise it
// waits until that may have changed. Then it has to be called again.
func (k *keeper) step(ctx context.Context) error {
	session, err := k.client.Session(ctx)
	if err != nil {
		return err
	}
	k.note(session)
	if k.cfg.sequential && k.cfg.ephemeral() && !k.madeIn(session) {
		k.name = "" // the node of a lost session is not in the way
	}
	node, mine, err := k.find(ctx, session)
	switch {
	case err != nil:
		return err
	case node == nil:
		k.blocked = time.Time{}
		k.show(view{})
		return k.create(ctx, session)
	case !mine:
		k.show(view{blocked: true})
		return k.awaitVacancy(ctx, session, node)
	case !k.fits(node):
		k.show(view{})
		_, err := k.delete(session, node) // the last Node of the path has left it
		return err
	}
	k.blocked, k.seenIn = time.Time{}, session.ID()
	k.creating(session) // perhaps the program has created the node by other means
	data, number := k.wanted()
	if !bytes.Equal(node.data, data) {
		k.show(view{node.path, session, -1, false})
		return k.write(ctx, session, node)
	}
	k.written = number
	k.show(view{node.path, session, number, false})
	left := k.untilTouch()
	if left <= 0 {
		return k.set(session, node, data)
	}
	k.awaitChange(ctx, left, node, k.wake)
	return nil
}

// awaitChange waits until the node that was read has changed or its session has ended, d has passed,
// wake receives, or a lost create has to be forgotten.
func (k *keeper) awaitChange(ctx context.Context, d time.Duration, node *found, wake <-chan struct{}) {
	k.await(ctx, min(d, k.lateFor()), node.watch.Fired(), wake)
}

// find reads the node, and reports whether it belongs to the Node.
func (k *keeper) find(ctx context.Context, session *framework.Session) (node *found, mine bool, err error) {
	begun := time.Now()
	if node, err = k.look(ctx, session); err != nil {
		return nil, false, err
	}
	mine = node != nil && k.owns(node, session)
	k.forgetLost(begun)
	return node, mine, nil
}

// found is a node that was read.
type found struct {
	path  string
	data  []byte
	stat  *zk.Stat
	watch *framework.Watch
}

// look reads the node with a watch. It returns nil if it is not there.
func (k *keeper) look(ctx context.Context, session *framework.Session) (*found, error) {
	if k.name == "" {
		return nil, nil
	}
	f := &found{path: k.name}
	err := once(ctx, func(ctx context.Context) (err error) {
		f.data, f.stat, f.watch, err = session.GetW(ctx, f.path)
		return err
	})
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	return f, err
}

// once calls fn with a context in which operations are not repeated.
func once(ctx context.Context, fn func(ctx context.Context) error) error {
	return retry.Do(ctx, retry.Never(), nil, fn)
}

// create creates the node, which is not there.
func (k *keeper) create(ctx context.Context, session *framework.Session) error {
	if k.seenIn == session.ID() {
		k.slowDown(ctx)
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	return k.createWith(ctx, session, func(ctx context.Context, data []byte) (framework.Result, error) {
		return session.CreateResult(ctx, k.path, data, k.cfg.create()...)
	})
}

// createWith calls create, which makes a request that creates the node.
func (k *keeper) createWith(
	ctx context.Context, session *framework.Session,
	create func(context.Context, []byte) (framework.Result, error),
) error {
	data, _ := k.wanted()
	begun := time.Now()
	k.creating(session)
	var made framework.Result
	err := k.attempt(ctx, func(ctx context.Context) (err error) {
		made, err = create(ctx, data)
		return err
	})
	switch {
	case err == nil:
		k.created(made)
		k.seenIn, k.touched = session.ID(), begun
	case isChanged(err):
		return nil // it has to be read again
	case framework.OutcomeOf(err) == framework.Unknown:
		k.lostAnswer(session, data)
	}
	return err
}

// attempt calls create. For a sequential node the client itself repeats the create by its policy,
// and deletes what it may have left when ctx ends.
func (k *keeper) attempt(ctx context.Context, create func(ctx context.Context) error) error {
	if k.cfg.sequential {
		return create(ctx)
	}
	return once(context.Background(), create)
}

// isChanged reports whether err means that another client has created, changed or deleted the node
// since it was read. A missing parent is not that.
func isChanged(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
}

// write writes the data, because the node has other data.
func (k *keeper) write(ctx context.Context, session *framework.Session, node *found) error {
	if _, number := k.wanted(); number == k.written {
		k.slowDown(ctx)
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	data, number := k.wanted()
	err := k.set(session, node, data)
	if err == nil {
		k.written = number
	}
	return err
}

// set writes data into the node that was read.
func (k *keeper) set(session *framework.Session, node *found, data []byte) error {
	begun := time.Now()
	err := once(context.Background(), func(ctx context.Context) error {
		_, err := session.Set(ctx, node.path, data, node.stat.Version)
		return err
	})
	switch {
	case err == nil:
		k.touched = begun
	case isChanged(err) || errors.Is(err, zk.ErrNoNode):
		return nil // it has to be read again
	}
	return err
}

// calm is for how long other clients must have left the node alone before a repair is made at once.
const calm = 10 * time.Second

// slowDown waits before a repair of what another client has done to the node, if there was one a
// short time ago.
func (k *keeper) slowDown(ctx context.Context) {
	if time.Since(k.repaired) > calm {
		k.repairs = 0
	}
	if k.repairs > 0 {
		k.pause(ctx, pause.After(k.repairs-1))
	}
	k.repairs++
	k.repaired = time.Now()
	k.log.Info("another client has deleted or changed the node: mending it", zap.Int("times", k.repairs))
}

// touches is how often a node with a time to live is written in that time.
const touches = 3

// untilTouch returns for how long the node need not be written.
func (k *keeper) untilTouch() time.Duration {
	if k.cfg.ttl == 0 {
		return NoLimit
	}
	return time.Until(k.touched.Add(k.cfg.ttl / touches))
}

// awaitVacancy waits until the node of another owner may be deleted or changed. It fails with
// ErrOccupied when that takes too long.
func (k *keeper) awaitVacancy(ctx context.Context, session *framework.Session, node *found) error {
	if k.ofFormerSession(node) {
		k.awaitChange(ctx, NoLimit, node, nil) // the servers delete it
		return nil
	}
	if k.seenIn == 0 && k.mayTakeOver(node) {
		return k.takeOver(ctx, session, node)
	}
	if k.blocked.IsZero() {
		k.blocked = time.Now()
		k.log.Warn("a node of another owner is at the path: waiting", zap.Stringer("owner", ownerOf(node)))
	}
	limit := k.cfg.occupied
	if limit < 0 {
		limit = 2 * bridge.OfSession(session).LongestTimeout()
	}
	left := limit - time.Since(k.blocked)
	if left <= 0 {
		return fmt.Errorf("%w: %s", ErrOccupied, origin(node))
	}
	k.awaitChange(ctx, left, node, nil)
	return nil
}

func ownerOf(node *found) logfield.Hex { return logfield.Hex(node.stat.EphemeralOwner) }

// origin says of which session the node is, if of one, and where the program that has created it
// can be looked for.
func origin(node *found) string {
	of := "persistent"
	if isEphemeral(node.stat.EphemeralOwner) {
		of = fmt.Sprintf("of session %v", ownerOf(node))
	}
	return fmt.Sprintf("%s, created in transaction %v", of, logfield.Hex(node.stat.Czxid))
}

// mayTakeOver reports whether the node is of an earlier process. Only an ephemeral Node replaces an
// ephemeral node.
func (k *keeper) mayTakeOver(node *found) bool {
	if k.cfg.ours == nil || !k.cfg.ephemeral() && isEphemeral(node.stat.EphemeralOwner) {
		return false
	}
	return k.cfg.ours(node.data, *node.stat)
}

// takeOver makes the node of an earlier process this one's.
func (k *keeper) takeOver(ctx context.Context, session *framework.Session, node *found) error {
	k.log.Info("taking over the node of an earlier process", zap.Stringer("owner", ownerOf(node)))
	if !k.cfg.ephemeral() {
		k.adopt(node.stat.Czxid, k.kind)
		k.seenIn = session.ID()
		return nil
	}
	err := k.createWith(ctx, session, func(ctx context.Context, data []byte) (framework.Result, error) {
		made, err := session.Multi(ctx, framework.DeleteOp(node.path, node.stat.Version),
			framework.CreateOp(node.path, data, k.cfg.replace()...))
		if err != nil {
			return framework.Result{}, err
		}
		return made[1], nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil // it has to be read again
	}
	return err
}
