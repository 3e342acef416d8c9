package framework

import (
	"maps"
	"slices"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// In ZooKeeper 3.8 a connection has one kind of watch for each path, in each of two tables: one for
// data and existence, one for children. The last request decides. So a read that sets a one-shot
// watch ends the persistent watch of its path, and the persistent watch ends the one-shot watch. A
// recursive watch takes the place of a one-shot watch for children, and never has its events. Since
// 3.9 watches of different kinds are independent. The rule that is right for both:
//
//   - While a persistent watch of a path stands that has the events of a one-shot watch, the read
//     for the one-shot watch sets none on the server.
//   - A one-shot watch of the same path that a change of the persistent watch may have ended is read
//     again behind that change, with a watch if it needs one of its own.
//   - If a read that sets a one-shot watch may end a persistent watch, the persistent watch is set
//     again behind it, and its events count as missed. From the request on, those that the server
//     sends for other watches are left out of it, because an earlier one may be missing.

// standing is what one connection has at a path, as far as the client knows.
type standing struct {
	path     string
	mode     WatchMode // on the server; 0: none
	pending  bool      // a request has been made for asked
	asked    WatchMode
	gap      bool // events may have been missed before asked is set
	replaced bool // a one-shot watch may have taken its place, or may do so soon
	waiting  []waitingWatch
}

// waitingWatch is an AddWatch in progress.
type waitingWatch struct {
	mode     WatchMode
	complete func(error)
}

// mayLose reports whether a one-shot watch may take the place of the server's watch.
func (st *standing) mayLose(kind watchKind) bool {
	return st.mode.covers(kind) || st.pending && st.asked.covers(kind)
}

// satisfies reports whether the server's watch is enough for a mode.
func (st *standing) satisfies(mode WatchMode) bool { return st.mode == mode || st.mode == WatchTree }

// watchTableKey is a place in one of the tables of a server.
type watchTableKey struct {
	path     string
	children bool
}

func (key watchKey) table() watchTableKey { return watchTableKey{key.path, key.kind == watchChildren} }

// nextRequest is the next request for a path; its standing is nil if there is none.
type nextRequest struct {
	*standing
	link         conn.Link
	mode, before WatchMode
	gap          bool
	completed    []func(error)
}

// next returns the next request for path. wanted returns what the server must watch.
func (t *watchTable) next(path string, wanted func(path string) WatchMode) (n nextRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st, mode := t.standing[path], wanted(path)
	switch {
	case st == nil && mode == 0, st != nil && (st.pending || t.losesLocked(st)):
		return n
	case st == nil:
		st = t.standingLocked(path)
	}
	if st.mode == mode && (mode == 0 || !st.replaced) {
		n.completed = st.takeWaiting(true) // those that want more have been stopped
		if mode == 0 {
			delete(t.standing, path)
		}
		return n
	}
	n.standing, n.link, n.mode, n.before, n.gap = st, t.link, mode, st.mode, st.replaced
	st.pending, st.asked, st.gap, st.replaced = true, mode, n.gap, false
	t.breakLocked(path, mode)
	return n
}

// losesLocked reports whether the server's watch is set again later: when a request has ended that may take
// its place. That end settles the path.
func (t *watchTable) losesLocked(st *standing) bool { return st.replaced && t.flaggedLocked(st) }

// flaggedLocked reports whether a request is under way that may take the place of the server's watch.
func (t *watchTable) flaggedLocked(st *standing) bool {
	for _, kind := range []watchKind{watchData, watchChildren} {
		key := watchKey{st.path, kind}
		if st.mayLose(kind) && t.flagged[key.table()] > 0 {
			return true
		}
	}
	return false
}

// hidden returns the path and the nodes above it with persistent watches that may have missed events:
// zk.EventNotWatching is told later, and nothing before it.
func (t *watchTable) hidden(path string) (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.standing) == 0 {
		return nil
	}
	for ; ; path = znode.Parent(path) {
		if st := t.standing[path]; st != nil && (st.replaced || st.pending && st.gap) {
			all = append(all, path)
		}
		if path == "/" {
			return all
		}
	}
}

func (t *watchTable) standingLocked(path string) *standing {
	st := t.standing[path]
	if st == nil {
		st = &standing{path: path}
		t.standing[path] = st
	}
	return st
}

// breakLocked marks the one-shot watches of path that the server may end when its persistent watch
// gets another mode.
func (t *watchTable) breakLocked(path string, mode WatchMode) {
	for _, w := range t.oneShotsLocked(path) {
		w.stale = w.stale || !mode.covers(w.key.kind)
	}
}

// oneShotsLocked returns the one-shot watches of path.
func (t *watchTable) oneShotsLocked(path string) (all []*watched) {
	for _, kind := range []watchKind{watchData, watchExists, watchChildren} {
		if w, there := t.entries[watchKey{path, kind}]; there {
			all = append(all, w)
		}
	}
	return all
}

// takeWaiting removes and returns the calls that the server's watch is enough for, or all.
func (st *standing) takeWaiting(all bool) (completed []func(error)) {
	st.waiting = slices.DeleteFunc(st.waiting, func(w waitingWatch) bool {
		ends := all || st.satisfies(w.mode)
		if ends {
			completed = append(completed, w.complete)
		}
		return ends
	})
	return completed
}

// await has complete called when the server has the watch, or with the error of the next request
// for it.
func (t *watchTable) await(path string, mode WatchMode, complete func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.standingLocked(path)
	st.waiting = append(st.waiting, waitingWatch{mode, complete})
}

// settled registers the end of a request. It returns the calls that are to be completed with err,
// and the one-shot watches that the server may have ended.
func (t *watchTable) settled(
	st *standing, mode WatchMode, gap bool, err error,
) (completed []func(error), shots []*watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st.pending = false
	if err == nil {
		st.mode = mode
		st.replaced = st.replaced || t.flaggedLocked(st) // by a read that was decided before this connection
	} else {
		st.replaced = st.replaced || gap
	}
	if t.standing[st.path] == st { // not of an earlier connection
		shots = t.oneShotsLocked(st.path)
	}
	return st.takeWaiting(err != nil), shots
}

// mayHaveTree reports whether the server may have a recursive watch of path, which has no events of
// the list of children.
func (t *watchTable) mayHaveTree(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.standing[path]
	return st != nil && (st.mode == WatchTree || st.pending && st.asked == WatchTree)
}

// standingPaths returns the given paths and those of which the server may have a watch, sorted.
func (t *watchTable) standingPaths(wanted []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.AppendSeq(wanted, maps.Keys(t.standing))
	slices.Sort(all)
	return slices.Compact(all)
}

// current reports whether st is of the current connection.
func (t *watchTable) current(st *standing) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.standing[st.path] == st
}

// renew begins another connection, on which the given watches are requested. It returns them in
// batches, and the calls that wait for other watches, which have been stopped.
func (t *watchTable) renew(
	link conn.Link, modes map[string]WatchMode,
) (batches [][]*standing, stopped []func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	former := t.standing
	t.link, t.standing = link, map[string]*standing{}
	for path, st := range former {
		if modes[path] == 0 {
			stopped = append(stopped, st.takeWaiting(true)...)
		} else if len(st.waiting) > 0 {
			t.standingLocked(path).waiting, st.waiting = st.waiting, nil
		}
	}
	size := batchBytes
	for _, path := range slices.Sorted(maps.Keys(modes)) {
		st := t.standingLocked(path)
		st.pending, st.asked, st.gap = true, modes[path], true
		if size += len(path); size >= batchBytes {
			batches, size = append(batches, nil), len(path)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], st)
	}
	return batches, stopped
}

// coveredLocked reports whether a persistent watch on the server receives the events of a one-shot
// watch.
func (t *watchTable) coveredLocked(key watchKey) bool {
	st := t.standing[key.path]
	return st != nil && !st.pending && !st.replaced && st.mode.covers(key.kind) && t.flagged[key.table()] == 0
}

// flagLocked counts a request that sets a one-shot watch.
func (t *watchTable) flagLocked(key watchKey) {
	t.flagged[key.table()]++
	if st := t.standing[key.path]; st != nil && st.mayLose(key.kind) {
		st.replaced = true
	}
}

// askAgain reports whether a request for an existing one-shot watch must set the watch on the
// server. If so, the caller must call unflag. If the server's persistent watch is about to change,
// it need not: recheck follows.
func (t *watchTable) askAgain(key watchKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st := t.standing[key.path]; st != nil && (st.pending || st.mode.covers(key.kind)) {
		return false
	}
	t.flagLocked(key)
	return true
}

// unflag registers the end of a request that sets a one-shot watch, and whether the server has set
// it. It reports whether the persistent watch of the path must be set again.
func (t *watchTable) unflag(key watchKey, set bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unflagLocked(key, set)
}

func (t *watchTable) unflagLocked(key watchKey, set bool) bool {
	if t.flagged[key.table()]--; t.flagged[key.table()] == 0 {
		delete(t.flagged, key.table())
	}
	st := t.standing[key.path]
	if st == nil || !st.mayLose(key.kind) {
		return false
	}
	st.replaced = st.replaced || set
	return st.replaced && !st.pending
}
