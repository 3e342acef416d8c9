package framework

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
)

// Watch is a one-shot signal: what was read with it may have changed, and should be read again. It
// also fires when the session ends. All watchers of the same data in one session share one Watch.
// There is nothing to close: an unused Watch costs one entry in a table until it fires.
type Watch struct {
	table *watchTable
	key   watchKey
	users int // reads that have it; guarded by the table's mu
	fired chan struct{}
	kind  zk.EventType // set before fired is closed
	then  []*func()    // called when it fires; guarded by the table's mu
	stale bool         // the session has reconnected since; guarded by the table's mu
}

// Fired returns a channel that is closed when the watch fires.
func (w *Watch) Fired() <-chan struct{} { return w.fired }

// Event returns the type of the event that fired the watch, or 0 if it has not fired. The types are
// zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged and
// zk.EventNodeChildrenChanged. Watches fire in the order of the events. After a reconnect or at the
// end of the session the event may be unknown; then the type is zk.EventNotWatching.
func (w *Watch) Event() zk.EventType {
	select {
	case <-w.fired:
		return w.kind
	default:
		return 0
	}
}

type watchKind int

const (
	watchData watchKind = iota
	watchExists
	watchChildren
)

// firedBy lists the kinds of watches that an event of the server fires.
var firedBy = map[zk.EventType][]watchKind{
	zk.EventNodeCreated:         {watchExists},
	zk.EventNodeDataChanged:     {watchData, watchExists},
	zk.EventNodeChildrenChanged: {watchChildren},
	zk.EventNodeDeleted:         {watchData, watchExists, watchChildren},
}

type watchKey struct {
	path string // full path
	kind watchKind
}

// watched is a Watch in the table.
type watched struct {
	Watch
	number int   // in the order of creation
	armed  bool  // the server has confirmed it
	arming int   // pending requests that may arm it
	seen   int64 // last known version of the watched data, see reading.version
}

// watchTable has at most one watch for each path and kind. The goroutine that reads the connection
// handles events before the answer to any later request. So a watch has fired before a read returns
// the change.
type watchTable struct {
	reconnects chan struct{} // one value after a reconnect; the buffer holds one
	refused    chan struct{} // one value after a busy server has refused a watch; the buffer holds one
	notSet     atomic.Bool   // it was a one-shot watch

	mu      sync.Mutex
	entries map[watchKey]*watched
	count   int // of all watches ever created
	closed  bool

	link     conn.Link             // the last connection
	standing map[string]*standing  // the persistent watches on it, by path
	flagged  map[watchTableKey]int // pending requests that set one-shot watches
}

func newWatchTable() *watchTable {
	return &watchTable{
		reconnects: make(chan struct{}, 1), refused: make(chan struct{}, 1), entries: map[watchKey]*watched{},
		standing: map[string]*standing{}, flagged: map[watchTableKey]int{},
	}
}

// onFire has fn called when w fires. It reports true if w has already fired; then fn is not called.
func (t *watchTable) onFire(w *Watch, fn *func()) (fired bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Event() != 0 {
		return true
	}
	w.then = append(w.then, fn)
	return false
}

// forget undoes onFire.
func (t *watchTable) forget(w *Watch, fn *func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.then = slices.DeleteFunc(w.then, func(other *func()) bool { return other == fn })
}

// event fires the watches that e concerns. The goroutine that reads the connection calls it.
func (t *watchTable) event(e zk.Event) {
	t.mu.Lock()
	var then []*func()
	for _, kind := range firedBy[e.Type] {
		then = append(then, t.fireLocked(watchKey{e.Path, kind}, e.Type)...)
	}
	t.mu.Unlock()
	callAll(then)
}

// callAll calls the functions in their order, unless they are nil. If one of them ends the goroutine, the
// others are called nevertheless.
func callAll(fns []*func()) {
	for _, fn := range slices.Backward(fns) {
		if *fn != nil {
			defer (*fn)()
		}
	}
}

// fireLocked removes a watch from the table and fires it. The caller must call the returned
// functions without mu.
func (t *watchTable) fireLocked(key watchKey, kind zk.EventType) (then []*func()) {
	w, there := t.entries[key]
	if !there {
		return nil
	}
	delete(t.entries, key)
	if w.kind = kind; w.stale {
		w.kind = zk.EventNotWatching // servers report missed events in no order
	}
	close(w.fired)
	then, w.then = w.then, nil
	return then
}

// close fires all watches, and every watch that is added later. The caller must call the returned
// functions.
func (t *watchTable) close() (then []*func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, w := range t.inOrderLocked() {
		then = append(then, t.fireLocked(w.key, zk.EventNotWatching)...)
	}
	return then
}

// batchBytes is the limit for the paths in one request that sets watches again. Servers limit a
// request to a megabyte.
const batchBytes = 128 << 10

// batches returns the chosen watches in batches. It includes watches that the server has not
// confirmed: they may have been set, and setting them again does no harm.
func (t *watchTable) batches(chosen func(watchKey) bool) []conn.Watches {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []conn.Watches
	size := batchBytes
	for _, w := range t.inOrderLocked() {
		if !chosen(w.key) {
			continue
		}
		if size += len(w.key.path); size >= batchBytes {
			all, size = append(all, conn.Watches{}), len(w.key.path)
		}
		list := w.list(&all[len(all)-1])
		*list = append(*list, w.key.path)
	}
	return all
}

// list returns the list of all in which w is set again. A watch for an existing node is a data
// watch. The list Exists is for nodes that do not exist.
func (w *watched) list(all *conn.Watches) *[]string {
	switch {
	case w.key.kind == watchChildren:
		return &all.Children
	case w.key.kind == watchExists && w.armed && w.seen == absent:
		return &all.Exists
	}
	return &all.Data
}

// reconnecting is called before the watches are set again.
func (t *watchTable) reconnecting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.entries {
		w.stale = true
	}
}

// reconnected is called after the watches were set again.
func (t *watchTable) reconnected() {
	select {
	case t.reconnects <- struct{}{}:
	default:
	}
}

// checkAgain has the watches checked again soon.
func (t *watchTable) checkAgain() {
	select {
	case t.refused <- struct{}{}:
	default:
	}
}

// setAgain is checkAgain that sets the one-shot watches again, too.
func (t *watchTable) setAgain() {
	t.notSet.Store(true)
	t.checkAgain()
}

// join returns the watch for key. With ask the caller must call session.answered when it has read
// the node. With watch, which implies ask, the read must set the watch on the server.
func (t *watchTable) join(key watchKey) (w *watched, ask, watch bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, there := t.entries[key]
	if !there {
		t.count++
		w = &watched{Watch: Watch{table: t, key: key, fired: make(chan struct{})}, number: t.count}
		if t.closed {
			w.kind = zk.EventNotWatching
			close(w.fired)
			return w, false, false
		}
		t.entries[key] = w
	}
	w.users++
	if w.armed {
		return w, false, false
	}
	w.arming++
	if watch = !t.coveredLocked(key); watch {
		t.flagLocked(key)
	}
	if st := t.standing[key.path]; st != nil && st.pending {
		w.stale = w.stale || !st.asked.covers(key.kind)
	}
	return w, true, watch
}

// drop undoes join. A watch that no read has any more leaves the table. The servers' watch stays until
// it fires or the connection ends: its removal could overtake a read that sets it again.
func (t *watchTable) drop(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.users--; w.users > 0 {
		return
	}
	if e, there := t.entries[w.key]; there && &e.Watch == w {
		delete(t.entries, w.key)
	}
}

// answered registers the end of a request that join asked for. It reports whether the persistent
// watch of the path must be set again.
func (t *watchTable) answered(key watchKey, w *watched, watch, armed bool, seen int64) (settle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if watch {
		settle = t.unflagLocked(key, armed)
	}
	w.arming--
	switch {
	case armed && w.armed:
		w.seen = max(w.seen, seen)
	case armed:
		w.armed, w.seen = true, seen
	}
	if !w.armed && w.arming == 0 && t.entries[key] == w {
		delete(t.entries, key)
	}
	return settle
}

// armed returns the watches that the server has confirmed.
func (t *watchTable) armed() []*watched {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(t.inOrderLocked(), func(w *watched) bool { return !w.armed })
}

// inOrderLocked returns all watches, the oldest first. The order is fixed, so that simulations
// repeat.
func (t *watchTable) inOrderLocked() []*watched {
	all := slices.Collect(maps.Values(t.entries))
	slices.SortFunc(all, func(a, b *watched) int { return a.number - b.number })
	return all
}

// compare fires w if the version now that a read returned is not the version that w has seen.
func (t *watchTable) compare(key watchKey, w *watched, now int64) {
	callAll(t.fireChanged(key, w, now))
}

func (t *watchTable) fireChanged(key watchKey, w *watched, now int64) (then []*func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.entries[key] != w:
	case !w.armed: // its first read is not answered yet
		return t.fireLocked(key, zk.EventNotWatching)
	case now == absent && w.seen != absent:
		return t.fireLocked(key, zk.EventNodeDeleted)
	case now != absent && w.seen == absent:
		return t.fireLocked(key, zk.EventNodeCreated)
	case now > w.seen && key.kind == watchChildren:
		return t.fireLocked(key, zk.EventNodeChildrenChanged)
	case now > w.seen:
		return t.fireLocked(key, zk.EventNodeDataChanged)
	}
	return nil
}

// reading is the result of a read.
type reading struct {
	data     []byte
	children []string
	stat     *zk.Stat // nil if there is no such node
}

// absent is the version of a missing node.
const absent int64 = -1

// version returns the zxid of the last change that a watch of this kind reports.
func (r reading) version(kind watchKind) int64 {
	switch {
	case r.stat == nil:
		return absent
	case kind == watchChildren:
		return r.stat.Pzxid
	}
	return r.stat.Mzxid
}

// read makes one request without a watch.
func (s *session) read(ctx context.Context, key watchKey) (reading, error) {
	return s.request(ctx, key, false, nil)
}

// request makes one read, with or without a watch; late is as in ask.
func (s *session) request(ctx context.Context, key watchKey, watch bool, late func(reading, error)) (reading, error) {
	request, parse := key.request(watch)
	return ask(ctx, s, late, request, parse)
}

// request returns the request that reads key, and the function that returns the result from the
// reply.
func (key watchKey) request(watch bool) (conn.Request, func(conn.Reply) (reading, error)) {
	switch key.kind {
	case watchChildren:
		return conn.Children(key.path, watch), func(reply conn.Reply) (r reading, err error) {
			r.children, r.stat, err = reply.Children()
			return r, err
		}
	case watchData:
		return conn.Get(key.path, watch), func(reply conn.Reply) (r reading, err error) {
			r.data, r.stat, err = reply.Data()
			return r, err
		}
	}
	return conn.Exists(key.path, watch), func(reply conn.Reply) (r reading, err error) {
		r.stat, err = reply.Stat()
		return r, unlessAbsent(err)
	}
}

// unlessAbsent returns nil for a missing node.
func unlessAbsent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// readWatched reads with a watch. It requests a watch only if the server has not set it yet.
func (s *session) readWatched(ctx context.Context, key watchKey) (reading, *Watch, error) {
	w, ask, watch := s.watches.join(key)
	var answered func(reading, error)
	if ask {
		answered = func(r reading, err error) { s.answered(key, w, watch, r, err) }
	}
	r, err := s.request(ctx, key, watch, answered)
	if abandoned(err) {
		return reading{}, nil, err // the watch may be set, and the next read of the same shares it
	}
	if ask {
		answered(r, err)
	}
	if err != nil {
		s.watches.drop(&w.Watch)
		return reading{}, nil, err
	}
	return r, &w.Watch, nil
}

// answered registers the end of a request that join asked for.
func (s *session) answered(key watchKey, w *watched, watch bool, r reading, err error) {
	if s.watches.answered(key, w, watch, err == nil, r.version(key.kind)) {
		s.settle(key.path)
	}
}

// rewatchRequests returns the requests that set the watches again on a new connection, before any
// other request. Servers do not report watches that they refuse; verifyWatches finds them. The
// persistent watches take the place of the one-shot watches that they cover, and the others are set
// behind them.
func (s *session) rewatchRequests() (all []conn.Request) {
	r := rewatch{s.core.watchers.wanted, map[watchKey]bool{}}
	all = s.setWatches(r.first)
	all = append(all, s.persistentRequests()...)
	return append(all, s.setWatches(r.last)...)
}

// rewatch chooses the one-shot watches that are set before the persistent watches, and behind them.
type rewatch struct {
	wanted func(path string) WatchMode
	set    map[watchKey]bool // those that were chosen first
}

func (r rewatch) first(key watchKey) bool {
	mode := r.wanted(key.path)
	r.set[key] = mode == 0 || mode.covers(key.kind)
	return r.set[key]
}

// last chooses the others, and those of reads that have begun meanwhile.
func (r rewatch) last(key watchKey) bool { return !r.set[key] && !r.wanted(key.path).covers(key.kind) }

func (s *session) setWatches(chosen func(watchKey) bool) (all []conn.Request) {
	for _, some := range s.watches.batches(chosen) {
		all = append(all, conn.SetWatches(some))
	}
	return all
}

// verifyInterval is the shortest pause between two checks of the watches without a reconnect. The
// longest is half as long again.
const verifyInterval = time.Minute

// verifyPause is the shortest pause before an incomplete check is repeated.
const verifyPause = 2 * time.Second

// verifyWatches checks the session's watches until the session ends: after each reconnect and,
// slowly, at other times.
func (s *session) verifyWatches() {
	timer := time.NewTimer(verifyInterval)
	defer timer.Stop()
	for renew := false; ; {
		select {
		case <-s.done:
			return
		case <-s.watches.reconnects:
			renew = true
			s.jitter()
		case <-s.watches.refused:
			timer.Reset(s.spread(verifyPause))
			continue
		case <-timer.C:
		}
		for _, path := range s.watches.standingPaths(s.core.watchers.paths()) {
			s.settle(path)
		}
		pause := verifyInterval
		renew = s.watches.notSet.Swap(false) || renew
		if s.verifyAll(renew) {
			renew = false
		} else {
			pause = verifyPause
		}
		timer.Reset(s.spread(pause))
	}
}

// spread returns d, or up to half as much more.
func (s *session) spread(d time.Duration) time.Duration {
	return d + time.Duration(s.random(int64(d/2)))
}

// verifyAll checks all watches. It reports false if a busy server has refused to answer: then the
// check has to be repeated. After the loss of a connection the next reconnect repeats it.
func (s *session) verifyAll(renew bool) (complete bool) {
	complete = true
	for _, w := range s.watches.armed() {
		if s.verifyWatch(w.key, w, renew) {
			continue
		}
		if connected, _, err := s.connected(); !connected || err != nil {
			return true
		}
		complete = false
	}
	return complete
}

// jitter waits for a random time, because many clients may reconnect to one server at once.
func (s *session) jitter() {
	const most = 50 * time.Millisecond
	sleep(time.Millisecond+time.Duration(s.random(int64(most))), s.done, nil)
}

// verifyWatch reads the watched data and fires the watch if it should have fired. With renew it
// requests the watch again. Watches are checked one after another, so that a client with thousands
// of them does not overload the servers after a reconnect. verifyWatch reports false if the check
// failed and may succeed later.
func (s *session) verifyWatch(key watchKey, w *watched, renew bool) bool {
	watch := renew && s.watches.askAgain(key)
	r, err := s.request(s.core.ctx, key, watch, nil)
	if watch {
		s.answeredAgain(key, err == nil)
	}
	if err == nil || isNoNode(err) {
		s.watches.compare(key, w, r.version(key.kind))
		return true
	}
	return !IsTransient(err)
}
