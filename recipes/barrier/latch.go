package barrier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// latch is a latch as it was read. Each count is a persistent node, named after the czxid of the
// latch's node and a number below n. So a count that comes late is not one of the next latch at the
// path, and two counts cannot have one node.
type latch struct {
	latchData
	czxid   int64
	version int32
	missing []int            // the numbers without a node, in order
	gone    bool             // it was deleted while it was read; missing is not known
	changed *framework.Watch // on the latch's node, if it was asked for
}

// latchData is the data of the latch's node, as JSON.
type latchData struct {
	Count int  `json:"count"`
	Open  bool `json:"open,omitempty"` // and about to be deleted
}

func (l *latch) open() bool { return l.Open || len(l.missing) == 0 }

func (l *latch) name(number int) string {
	return strconv.FormatInt(l.czxid, 16) + "-" + strconv.Itoa(number)
}

// make creates the latch.
func (l *CountDown) make(ctx context.Context) error {
	data, _ := json.Marshal(latchData{Count: l.n}) // never fails
	_, err := l.client.Create(ctx, l.path, data, framework.Parents())
	if ctxerr.Answered(ctx, err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// read returns the latch, or nil if there was none.
func (l *CountDown) read(ctx context.Context) (*latch, error) {
	data, stat, err := l.client.Get(ctx, l.path)
	return l.parse(ctx, data, stat, nil, err)
}

// readW is read with a watch.
func (l *CountDown) readW(ctx context.Context) (*latch, error) {
	data, stat, watch, err := l.client.GetW(ctx, l.path)
	return l.parse(ctx, data, stat, watch, err)
}

// replaces reports whether a latch with the given czxid does not exist any more, as read has shown.
func (l *latch) replaces(czxid int64, err error) bool {
	return l == nil && err == nil || l != nil && (l.gone || l.czxid != czxid)
}

// parse returns the latch from the answer for its node, and lists the counts. It also returns a latch
// with ErrParties.
func (l *CountDown) parse(
	ctx context.Context, data []byte, stat *zk.Stat, changed *framework.Watch, err error,
) (*latch, error) {
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := &latch{czxid: stat.Czxid, version: stat.Version, changed: changed}
	if err := json.Unmarshal(data, &now.latchData); err != nil || now.Count == 0 {
		return now, fmt.Errorf("%w: the data %.80q is not that of a latch", ErrParties, data)
	}
	if now.Count != l.n {
		return now, fmt.Errorf("%w: %d here, %d at the path", ErrParties, l.n, now.Count)
	}
	names, list, err := l.client.Children(ctx, l.path)
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode), err == nil && list.Czxid != now.czxid:
		now.gone = true
		return now, nil
	case err != nil:
		return nil, err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for number := range l.n {
		if !there[now.name(number)] {
			now.missing = append(now.missing, number)
		}
	}
	return now, nil
}

// Count returns how many counts are missing until the latch opens. It creates nothing: a latch that
// does not exist has all of them missing. The server that it reads from may be a little behind. It
// fails as other reads of the client do, and with ErrParties. Java: getCount.
func (l *CountDown) Count(ctx context.Context) (int, error) {
	if err := l.begin(ctx, "CountDown"); err != nil {
		return 0, fmt.Errorf("read latch %s: %w", l.path, err)
	}
	now, err := l.read(ctx)
	switch {
	case err != nil:
		return 0, l.failed(ctx, "read latch", err)
	case now == nil || now.gone:
		return l.n, nil
	case now.Open:
		return 0, nil
	}
	return len(now.missing), nil
}

// Wait waits until the latch is open. It returns nil at once if it is, and creates the latch if it is
// missing.
//
// Wait lasts through lost connections and lost sessions. It fails when ctx ends, with
// framework.ErrClosed when the client is closed, with ErrParties if the latch was created for another
// number, with ErrNodeDeleted if the latch is deleted before it is open, and with what the servers
// refuse. It watches the latch's node and one of the missing counts, and lists the counts each time
// that this one is there: about as often as the logarithm of n. Java: await.
func (l *CountDown) Wait(ctx context.Context) error {
	if err := l.begin(ctx, "CountDown"); err != nil {
		return fmt.Errorf("wait for latch %s: %w", l.path, err)
	}
	var w latchWait
	for {
		open, err := l.look(ctx, &w)
		if err == nil && open {
			return nil
		}
		if err == nil {
			err = l.await(ctx, w.latch.changed, w.count)
		}
		if err != nil && !l.outlasts(ctx, err) {
			return l.failed(ctx, "wait for latch", err)
		}
	}
}

// latchWait is what a waiter waits for.
type latchWait struct {
	latch *latch           // as it was last read; nil: it was not
	count *framework.Watch // on a missing count
}

// look reports whether the latch is open.
func (l *CountDown) look(ctx context.Context, w *latchWait) (open bool, err error) {
	for {
		now, err := l.readW(ctx)
		switch {
		case w.latch != nil && now.replaces(w.latch.czxid, err):
			return w.latch.wasOpened()
		case err != nil:
			return false, err
		case now == nil:
			if err := l.make(ctx); err != nil {
				return false, err
			}
			continue
		case now.gone:
			return now.wasOpened()
		}
		w.latch = now
		if now.open() {
			return true, nil
		}
		last := now.missing[len(now.missing)-1]
		stat, watch, err := l.client.ExistsW(ctx, l.child(now.name(last)))
		if err != nil {
			return false, err
		}
		if w.count = watch; stat == nil {
			return false, nil
		}
	}
}

// wasOpened reports whether a latch that is deleted now was open. The data of a latch changes once:
// when it is open, and about to be deleted.
func (l *latch) wasOpened() (bool, error) {
	if l.Open || l.changed.Event() == zk.EventNodeDataChanged {
		return true, nil
	}
	return false, ErrNodeDeleted
}

// Delete deletes the nodes of an open latch. It fails with ErrNotOpen if the latch is not open, so
// that no waiter is let in or forgotten. It returns nil if there is no latch. A Wait that was called
// before ends with nil, or with ErrNodeDeleted if its client was without a connection meanwhile. A
// Wait or a CountDown that is called afterwards begins another latch. Delete fails otherwise as Wait
// does; call it again then, also in another process.
func (l *CountDown) Delete(ctx context.Context) error {
	if err := l.begin(ctx, "CountDown"); err != nil {
		return fmt.Errorf("delete latch %s: %w", l.path, err)
	}
	var first *latch // the next one at the path is left alone
	for {
		now, err := l.read(ctx)
		if first == nil {
			first = now
		}
		if first == nil && err == nil || first != nil && now.replaces(first.czxid, err) {
			return nil
		}
		if err == nil {
			err = l.deleteStep(ctx, now)
		}
		if err != nil && !isChanged(ctx, err) && !l.outlasts(ctx, err) {
			return l.failed(ctx, "delete latch", err)
		}
	}
}

// deleteStep marks a latch as open, and then deletes the counts, so that it stays open meanwhile.
func (l *CountDown) deleteStep(ctx context.Context, now *latch) error {
	switch {
	case !now.open():
		return ErrNotOpen
	case !now.Open:
		return l.mark(ctx, now)
	}
	return l.deleteMarked(ctx, now)
}

// mark checks a count, because the next latch at the path has the same version.
func (l *CountDown) mark(ctx context.Context, now *latch) error {
	now.Open = true
	data, err := json.Marshal(now.latchData)
	if err != nil {
		return err
	}
	count := framework.CheckOp(l.child(now.name(0)), -1)
	_, err = l.client.Multi(ctx, count, framework.SetOp(l.path, data, now.version))
	return err
}

// deletedAtOnce is how many nodes are deleted in one transaction.
const deletedAtOnce = 100

// deleteMarked returns nil also if there is another latch or another count now: the latch is to be
// read again.
func (l *CountDown) deleteMarked(ctx context.Context, now *latch) error {
	names, stat, err := l.client.Children(ctx, l.path)
	if err != nil {
		return err
	}
	if stat.Czxid != now.czxid {
		return nil // these are counts of the next latch
	}
	for some := range slices.Chunk(names, deletedAtOnce) {
		var paths []string
		for _, name := range some {
			paths = append(paths, l.child(name))
		}
		err := l.client.DeleteGuaranteed(ctx, paths...)
		if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return err
		}
	}
	err = l.client.Delete(ctx, l.path, now.version)
	if ctxerr.Answered(ctx, err, zk.ErrNotEmpty) {
		return nil
	}
	return err
}
