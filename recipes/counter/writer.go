package counter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
)

// writers has the writers of one client, by the keys of their nodes.
type writers struct {
	mu  sync.Mutex
	all map[any]*writer
}

// writer makes the updates of one client to one node.
type writer struct {
	pending
	client *framework.Client
	path   string
	first  chan struct{} // of capacity 1: full while a goroutine waits for the turn or the lock
	turn   chan struct{} // of capacity 1: full while a goroutine makes requests

	// Used by the goroutine that has the turn.
	marker    *marker  // nil: there is none
	known     *reading // the node as of the last answer; nil: it must be read
	batch     *batch   // of which an attempt has an unknown outcome, or nil
	number    uint64   // of the last batch
	written   version  // by the last batch
	contended bool     // other clients write too, so the node is read before each batch

	// Guarded by mu of all.
	all   *writers
	key   any
	users int
	idle  *time.Timer // runs while there are no users
}

// idleTime is for how long a writer keeps its marker after the last update.
const idleTime = 2 * time.Second

// join returns the client's writer of a node, for one update.
func join(c *framework.Client, path string) *writer {
	b := bridge.Of(c)
	all, key := bridge.Local[writers](b), b.Key(path)
	all.mu.Lock()
	defer all.mu.Unlock()
	w := all.all[key]
	if w == nil {
		w = &writer{client: c, path: path, all: all, key: key,
			first: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
		if all.all == nil {
			all.all = map[any]*writer{}
		}
		all.all[key] = w
	}
	w.users++
	if w.idle != nil {
		w.idle.Stop()
	}
	return w
}

// leave ends the use of a writer for one update.
func (w *writer) leave() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.users--
	switch {
	case w.users > 0:
	case w.idle == nil:
		w.idle = time.AfterFunc(idleTime, w.end)
	default:
		w.idle.Reset(idleTime)
	}
}

// end forgets the writer and deletes its marker, unless it is used again.
func (w *writer) end() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.users > 0 || w.all.all[w.key] != w {
		return
	}
	delete(w.all.all, w.key)
	if m := w.marker; m != nil && m.path != "" {
		bridge.OfSession(m.session).Go(func() { w.delete(m) })
	}
	w.marker, w.known = nil, nil
}

// delete deletes the marker of a writer that was forgotten. If the servers refuse that, the writer
// and its marker are used again, so that there is one marker and not one for each use.
func (w *writer) delete(m *marker) {
	err := m.session.DeleteGuaranteed(context.Background(), m.path) // ends with the session
	if !errors.Is(err, zk.ErrNoAuth) {
		return
	}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.all.all[w.key] == nil {
		w.all.all[w.key], w.marker = w, m
	}
}

// optimistic is how often an update is tried before it waits in the queue.
const optimistic = 3

// drive makes requests until u is finished. It does not keep the turn while it waits in the queue.
func (w *writer) drive(ctx context.Context, u *update) error {
	err := w.try(ctx, u, false)
	if err != nil || w.isFinished(u) {
		return err
	}
	hold, err := w.enqueue(ctx, u)
	if err != nil {
		return err
	}
	defer w.release(hold)
	return w.try(ctx, u, true)
}

// try makes requests until u is finished. If it is not queued, it returns after a few conflicts.
func (w *writer) try(ctx context.Context, u *update, queued bool) error {
	select {
	case w.turn <- struct{}{}:
	case <-u.done:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	defer func() { <-w.turn }()
	if w.contended {
		w.known = nil // most likely, another client has written
	}
	for conflicts := 0; !w.isFinished(u); {
		conflict, err := w.step(ctx, u.seed)
		switch {
		case err != nil:
			return err
		case !conflict:
			continue
		}
		w.contended = true
		conflicts++
		switch {
		case queued:
			pause(ctx, min(time.Millisecond<<min(conflicts, 10), 50*time.Millisecond))
		case conflicts == optimistic:
			return nil
		}
	}
	return nil
}

// enqueue waits in the queue for its turn among all clients. A client that may not use the lock goes
// on without a hold.
func (w *writer) enqueue(ctx context.Context, u *update) (*recipes.Hold, error) {
	hold, err := u.lock.Acquire(ctx)
	if ctxerr.Answered(ctx, err, zk.ErrNoAuth) {
		return nil, nil
	}
	return hold, err
}

// release releases a hold in the background.
func (w *writer) release(hold *recipes.Hold) {
	if hold == nil {
		return
	}
	if !bridge.Of(w.client).Go(func() { _ = hold.Release() }) {
		_ = hold.Release() // sends nothing once the client is closed
	}
}

// step comes closer to the end of the updates. It reports a conflict if another client was faster.
// A lost session is no error: the next step uses the next one.
func (w *writer) step(ctx context.Context, seed []byte) (conflict bool, err error) {
	if err := w.prepare(ctx, seed); err != nil || w.known == nil {
		return false, err
	}
	b, err := w.next(ctx)
	switch {
	case err != nil || b == nil:
		return false, err
	case b.unknown != nil && b.marker != w.marker:
		return w.settle(ctx, b)
	}
	return w.send(ctx, b)
}

// prepare makes sure that there is a session, a marker and a reading of the node. The reading may
// be missing afterwards, because the node was deleted or the session was lost; then it has to be
// called again.
func (w *writer) prepare(ctx context.Context, seed []byte) error {
	if w.marker == nil || w.marker.session.Err() != nil {
		w.dropMarker()
		m, err := w.newMarker(ctx, seed)
		if err != nil {
			return w.outlast(ctx, err)
		}
		w.marker = m
	}
	if w.known == nil {
		return w.read(ctx)
	}
	return nil
}

// read reads the node in the session of the marker.
func (w *writer) read(ctx context.Context) error {
	data, stat, err := w.marker.session.Get(ctx, w.path)
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		w.dropMarker() // deleted together with the node
		return nil
	case err != nil:
		return w.outlast(ctx, err)
	}
	r := readingOf(data, stat)
	w.known = &r
	w.contended = w.contended && r.version != w.written
	return nil
}

// outlast returns nil for the error of a lost session, because the client gets another one.
func (w *writer) outlast(ctx context.Context, err error) error {
	final := errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed)
	if final || ctx.Err() != nil || !errors.Is(err, framework.ErrSessionLost) {
		return err
	}
	w.dropMarker()
	return nil
}

// next returns the batch whose outcome is unknown, or composes one of the updates that wait. It
// returns nil if there is nothing to write.
func (w *writer) next(ctx context.Context) (*batch, error) {
	if b := w.batch; b != nil {
		if w.wanted(b) {
			return b, nil
		}
		w.batch, w.known = nil, nil
		return nil, nil
	}
	b := w.take()
	if b == nil {
		return nil, nil
	}
	w.compose(b, *w.known)
	if b.writes {
		w.number++
		b.number = w.number
		return b, nil
	}
	// The transaction would have shown that what is known is still so.
	if err := w.marker.session.Sync(ctx, w.path); err != nil {
		w.requeue(b)
		return nil, w.outlast(ctx, err)
	}
	w.known = nil
	if err := w.read(ctx); err != nil || w.known == nil {
		w.requeue(b)
		return nil, err
	}
	w.compose(b, *w.known)
	if !b.writes {
		w.finish(b, b.from.version, nil)
		return nil, nil
	}
	w.number++
	b.number = w.number
	return b, nil
}

// send sends the transaction of a batch. It may have been sent before.
func (w *writer) send(ctx context.Context, b *batch) (conflict bool, err error) {
	m := w.marker
	b.former = b.former || b.unknown != nil && b.marker != m
	b.marker = m
	before := b.unknown
	w.batch, b.unknown = b, errInterrupted
	results, err := m.session.Multi(ctx, w.transaction(b)...)
	switch {
	case err == nil:
		w.batch = nil
		stat := results[len(w.writes(b))-1].Stat
		w.known = &reading{b.data, version{stat.Czxid, stat.Version}}
		w.written = w.known.version
		w.finish(b, w.written, nil)
		return false, nil
	case framework.OutcomeOf(err) == framework.NotApplied:
		b.unknown = before
	default:
		b.unknown = err
	}
	changed, missing := ctxerr.Answered(ctx, err, zk.ErrBadVersion), ctxerr.Answered(ctx, err, zk.ErrNoNode)
	if b.unknown == nil {
		w.batch, w.known = nil, nil
		w.requeue(b)
	}
	switch {
	case changed && b.unknown == nil:
		return true, nil
	case changed:
		return w.tell(ctx, b)
	case missing:
		w.dropMarker() // the node was deleted, or another client has deleted the marker
		return false, nil
	}
	return false, w.outlast(ctx, err)
}

// errInterrupted means that code of the program has ended the goroutine that sent a batch.
var errInterrupted = errors.New("the goroutine was ended while an answer was missing")

// transaction returns the operations that write a batch.
func (w *writer) transaction(b *batch) []framework.Op {
	ops := w.writes(b)
	if b.marker.path != "" {
		ops = append(ops, framework.SetOp(b.marker.path, number(b.number), -1))
	}
	return ops
}

// writes returns the operations that write the data if the node has the version that was read. After
// 2^31 writes that may be -1, which stands for any version in a request. The second operation then
// fails unless the version was -1 before the first.
func (w *writer) writes(b *batch) []framework.Op {
	if b.from.number == -1 {
		return []framework.Op{framework.SetOp(w.path, nil, -1), framework.SetOp(w.path, b.data, 0)}
	}
	return []framework.Op{framework.SetOp(w.path, b.data, b.from.number)}
}

// tell finds out whether a batch was applied, after an answer that the node has another version.
func (w *writer) tell(ctx context.Context, b *batch) (conflict bool, err error) {
	m := w.marker
	w.known = nil
	if m.path != "" {
		data, _, err := m.session.Get(ctx, m.path)
		switch {
		case ctxerr.Answered(ctx, err, zk.ErrNoNode), err == nil && len(data) != len(number(0)):
			w.dropMarker() // another client has deleted or overwritten it
			return false, nil
		case err != nil:
			return false, w.outlast(ctx, err)
		case bytes.Equal(data, number(b.number)):
			w.batch = nil
			w.finish(b, b.from.written(), nil)
			return false, nil
		case !b.former:
			w.batch = nil
			w.requeue(b)
			return true, nil
		}
	}
	if err := w.read(ctx); err != nil || w.known == nil {
		return false, err
	}
	return w.settle(ctx, b)
}

// settle continues with a batch when there is no marker that tells whether it was applied: the
// session that had it is lost. The reading is fresh.
func (w *writer) settle(ctx context.Context, b *batch) (conflict bool, err error) {
	switch {
	case w.known.version == b.from.version:
		return w.send(ctx, b) // of all attempts only one can be applied
	case w.known.version == b.from.next() && !bytes.Equal(w.known.data, b.data):
		w.batch = nil
		w.requeue(b)
		return true, nil // the one write since then was another client's
	}
	w.batch = nil
	w.finish(b, version{}, fmt.Errorf("%w: %w", errReplaced, b.unknown))
	return false, nil
}

// next returns the version of the node after a write of another client.
func (v version) next() version { return version{v.czxid, v.number + 1} }

// written returns the version of the node after writes.
func (v version) written() version {
	if v.number == -1 {
		return version{v.czxid, 1}
	}
	return v.next()
}
