package framework

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
)

// Watch is a one-shot signal: what was read with it may have changed, and should be read again. It
// also fires when the session ends. All watchers of the same data in one session share one Watch.
// There is nothing to close: an unused Watch costs one entry in a table until it fires.
type Watch struct {
	table *watchTable
	fired chan struct{}
	kind  zk.EventType // set before fired is closed
	then  []func()     // until then; guarded by the hub's mu
	stale bool         // there was a reconnect since; guarded by the hub's mu
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

// firedBy lists the watches that an event of the server fires.
var firedBy = map[zk.EventType][]watchKind{
	zk.EventNodeCreated:         {watchExists},
	zk.EventNodeDataChanged:     {watchData, watchExists},
	zk.EventNodeChildrenChanged: {watchChildren},
	zk.EventNodeDeleted:         {watchData, watchExists, watchChildren},
}

type watchKey struct {
	path string // the full one
	kind watchKind
}

// watched is a Watch in the table.
type watched struct {
	Watch
	key    watchKey
	number int   // in the order of their making
	armed  bool  // the server has confirmed it
	arming int   // requests under way that may arm it
	seen   int64 // the version of what it watches, see reading.version
}

// hub has one watch at most per path and kind. Events come by the goroutine that reads the connection, before the answer to any
// later request: a Watch has fired before a read returns what fired it.
type watchTable struct {
	reconnects chan struct{} // room for one: there was a reconnect

	mu      sync.Mutex
	entries map[watchKey]*watched
	count   int // watches, ever
	closed  bool
}

func newWatchTable() *watchTable {
	return &watchTable{reconnects: make(chan struct{}, 1), entries: map[watchKey]*watched{}}
}

// when notes what to do when w fires. It returns whether that has happened.
func (t *watchTable) onFire(w *Watch, fn func()) (fired bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Event() != 0 {
		return true
	}
	w.then = append(w.then, fn)
	return false
}

// event fires what e firedBy. It is called by the goroutine that reads the connection.
func (t *watchTable) event(e zk.Event) {
	t.mu.Lock()
	var then []func()
	for _, kind := range firedBy[e.Type] {
		then = append(then, t.fireLocked(watchKey{e.Path, kind}, e.Type)...)
	}
	t.mu.Unlock()
	callAll(then)
}

func callAll(fns []func()) {
	for _, fn := range fns {
		fn()
	}
}

// fire is called with mu held. What it returns is to be called without.
func (t *watchTable) fireLocked(key watchKey, kind zk.EventType) (then []func()) {
	w, there := t.entries[key]
	if !there {
		return nil
	}
	delete(t.entries, key)
	if w.kind = kind; w.stale {
		w.kind = zk.EventNotWatching // servers tell what was missed in no order, so that one must look
	}
	close(w.fired)
	then, w.then = w.then, nil
	return then
}

// close fires everything, for good. What it returns is still to be called.
func (t *watchTable) close() (then []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, w := range t.inOrderLocked() {
		then = append(then, t.fireLocked(w.key, zk.EventNotWatching)...)
	}
	return then
}

// batchBytes is how many bytes of paths are set again with one request, which servers limit to a megabyte.
const batchBytes = 128 << 10

// portions are all watches, in portions. One of which the server has not been heard yet is among them: it may have been set, and that it has
// not been does no harm.
func (t *watchTable) batches() []conn.Watches {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []conn.Watches
	size := batchBytes
	for _, w := range t.inOrderLocked() {
		if size += len(w.key.path); size >= batchBytes {
			all, size = append(all, conn.Watches{}), len(w.key.path)
		}
		list := w.list(&all[len(all)-1])
		*list = append(*list, w.key.path)
	}
	return all
}

// list is where a watch belongs to be set again. One for a node that exists is one for its data: for servers the other list is of nodes
// to be created.
func (w *watched) list(all *conn.Watches) *[]string {
	switch {
	case w.key.kind == watchChildren:
		return &all.Children
	case w.key.kind == watchExists && w.armed && w.seen == absent:
		return &all.Exists
	}
	return &all.Data
}

// reconnecting comes before the watches are set again.
func (t *watchTable) reconnecting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.entries {
		w.stale = true
	}
}

// reconnected comes after that.
func (t *watchTable) reconnected() {
	select {
	case t.reconnects <- struct{}{}:
	default:
	}
}

// join returns the watch for key and whether the caller has to ask the server for it.
func (t *watchTable) join(key watchKey) (w *watched, ask bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, there := t.entries[key]
	if !there {
		t.count++
		w = &watched{Watch: Watch{table: t, fired: make(chan struct{})}, key: key, number: t.count}
		if t.closed {
			w.kind = zk.EventNotWatching
			close(w.fired)
			return w, false
		}
		t.entries[key] = w
	}
	if !w.armed {
		w.arming++
	}
	return w, !w.armed
}

// asked settles a request that join asked for.
func (t *watchTable) answered(key watchKey, w *watched, armed bool, seen int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
}

// pending are the watches that the server has confirmed.
func (t *watchTable) armed() []*watched {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(t.inOrderLocked(), func(w *watched) bool { return !w.armed })
}

// inOrder is the table, the oldest first: what is done to all is done in an order that chance has no part in. It needs mu.
func (t *watchTable) inOrderLocked() []*watched {
	all := slices.Collect(maps.Values(t.entries))
	slices.SortFunc(all, func(a, b *watched) int { return a.number - b.number })
	return all
}

// compare fires w if what a read shows now is not what w watches.
func (t *watchTable) compare(key watchKey, w *watched, now int64) {
	callAll(t.fireChanged(key, w, now))
}

func (t *watchTable) fireChanged(key watchKey, w *watched, now int64) (then []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.entries[key] != w:
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

// reading is what a read shows of a node.
type reading struct {
	data     []byte
	children []string
	stat     *zk.Stat // nil: there is no node
}

// absent is the version of a node that is not there.
const absent int64 = -1

// version is the zxid of the last change that a watch of this kind would tell of.
func (r reading) version(kind watchKind) int64 {
	switch {
	case r.stat == nil:
		return absent
	case kind == watchChildren:
		return r.stat.Pzxid
	}
	return r.stat.Mzxid
}

// read is one request, without a watch.
func (s *session) read(ctx context.Context, key watchKey) (reading, error) {
	return s.request(ctx, key, false, nil)
}

// request is a read, with or without a watch; late is as in ask.
func (s *session) request(ctx context.Context, key watchKey, watch bool, late func(reading, error)) (reading, error) {
	request, parse := key.request(watch)
	return ask(ctx, s, late, request, parse)
}

// request is the read of a key, and what makes the result of the reply.
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

// unlessAbsent takes it for an answer that there is no node.
func unlessAbsent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// readWatched reads with a watch, and asks the server for a watch only if there is none yet.
func (s *session) readWatched(ctx context.Context, key watchKey) (reading, *Watch, error) {
	w, ask := s.watches.join(key)
	var answered func(reading, error)
	if ask {
		answered = func(r reading, err error) { s.watches.answered(key, w, err == nil, r.version(key.kind)) }
	}
	r, err := s.request(ctx, key, ask, answered)
	if ask && !abandoned(err) {
		answered(r, err)
	}
	if err != nil {
		return reading{}, nil, err
	}
	return r, &w.Watch, nil
}

// watches are the requests that set the watches again on a new connection, before anything else is asked there. Whether the servers have refused
// one, which they tell of none by itself, the audit finds out.
func (s *session) rewatchRequests() (all []conn.Request) {
	for _, some := range s.watches.batches() {
		all = append(all, conn.SetWatches(some))
	}
	return all
}

// verifyInterval is how often a watch is looked after when nothing happens, at most half as long again.
const verifyInterval = time.Minute

// audit looks after the session's watches until it is over: after each reconnect and, slowly, in any case.
func (s *session) verifyWatches() {
	timer := time.NewTimer(verifyInterval)
	defer timer.Stop()
	for {
		renew := false
		select {
		case <-s.done:
			return
		case <-s.watches.reconnects:
			renew = true
			s.jitter()
		case <-timer.C:
		}
		for _, w := range s.watches.armed() {
			if !s.verifyWatch(w.key, w, renew) {
				break
			}
		}
		timer.Reset(verifyInterval + time.Duration(s.random(int64(verifyInterval/2))))
	}
}

// settle gives servers to whom many clients come at once a little rest.
func (s *session) jitter() {
	const most = 50 * time.Millisecond
	sleep(time.Millisecond+time.Duration(s.random(int64(most))), s.done, nil)
}

// reexamine reads what a watch watches and fires it if it should have fired. One after the other, so that a client with thousands
// of watches does not come down on the servers after a reconnect. With renew it asks for the watch again. False means trouble with the
// connection, and that the rest is for another time: for the next reconnect as a rule.
func (s *session) verifyWatch(key watchKey, w *watched, renew bool) bool {
	r, err := s.request(s.core.ctx, key, renew, nil)
	if err == nil || isNoNode(err) {
		s.watches.compare(key, w, r.version(key.kind))
		return true
	}
	return !IsTransient(err) && s.reason() == nil
}
