package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/leader"
)

// olderServers is a dialer by which each server seems to be older than 3.6: it does not know
// persistent watches.
func olderServers(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return olderServer{conn}, nil
}

type olderServer struct{ net.Conn }

// Write is called with one whole frame at a time. The type of a request follows its length and xid.
// No server knows the type that takes the place of that of persistent watches.
func (c olderServer) Write(frame []byte) (int, error) {
	const addWatch, unknown = 106, 9999
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == addWatch {
		frame = append([]byte(nil), frame...)
		binary.BigEndian.PutUint32(frame[8:], unknown)
	}
	return c.Conn.Write(frame)
}

// follower is what a worker follows and changes with one client.
type follower struct {
	worker *worker
	caches []*followedCache
	views  []*view
	shots  []*oneShot
	group  *groupView
	writer *writer
	kept   []*registration
}

// Report is what a worker tells of what it follows, in one line of each thing and a last one.
type Report struct {
	Cache  *cacheReport     `json:",omitempty"`
	View   *viewReport      `json:",omitempty"`
	Shots  map[string]int64 `json:",omitempty"`
	Group  *groupReport     `json:",omitempty"`
	Writes []attempt        `json:",omitempty"`
	Kept   []keptReport     `json:",omitempty"`
}

// follow begins to follow the subtree and the group. Nothing is kept yet.
func follow(ctx context.Context, w *worker) (*follower, error) {
	f := &follower{worker: w, group: newGroupView()}
	f.writer = &writer{
		client: w.client, name: fmt.Sprintf("%s-%d", w.Name, os.Getpid()), pause: siegePause,
		random: another(w.random),
		wrong:  func(err error) { w.report(turn{Kind: kindError, Lock: subtree, Lost: err.Error()}) },
		begins: func(a attempt) { w.report(turn{Kind: kindBegins, Report: &Report{Writes: []attempt{a}}}) },
	}
	for _, kind := range keptKinds {
		f.kept = append(f.kept, newRegistration(w, kind))
	}
	w.running.Go(func() { f.group.follow(ctx, w.client) })
	return f, f.followSubtree()
}

// show reports all.
func (f *follower) show(ctx context.Context) {
	w := f.worker
	for _, c := range f.caches {
		w.report(turn{Kind: kindCache, Lock: c.scope.name, Report: &Report{Cache: c.report()}})
	}
	for _, v := range f.views {
		w.report(turn{Kind: kindView, Lock: v.path, Report: &Report{View: v.report()}})
	}
	last := &Report{Shots: map[string]int64{}, Group: f.group.report(), Writes: f.writer.take()}
	for _, s := range f.shots {
		last.Shots[s.key()] = s.report()
	}
	for _, r := range f.kept {
		last.Kept = append(last.Kept, r.report(ctx))
	}
	t := w.rest()
	t.Kind, t.Report = kindShown, last
	w.report(t)
}

// followWork follows the subtree and the group, and keeps nodes, as its orders say.
func followWork(ctx context.Context, w *worker) error {
	f, err := follow(ctx, w)
	if err != nil {
		return err
	}
	w.client.Listen(func(c framework.StateChange) { w.report(turn{Kind: kindState, Lock: c.State.String()}) })
	var orders []chan<- string
	for _, r := range f.kept {
		ordered := make(chan string, 100)
		orders = append(orders, ordered)
		w.running.Go(func() { w.keep(ctx, r, ordered) })
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case order := <-w.orders:
			if order == orderShow {
				f.show(ctx)
				continue
			}
			for _, to := range orders {
				to <- order
			}
		}
	}
}

// keep keeps a node, with the data of the worker's settings at first, as its orders say.
func (w *worker) keep(ctx context.Context, r *registration, orders <-chan string) {
	if err := r.open(ctx, w.Data); err != nil {
		w.report(turn{Kind: kindError, Lock: r.kind, Lost: err.Error()})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case order := <-orders:
			data, set := strings.CutPrefix(order, orderSet)
			if set {
				if err := r.set(data); err != nil {
					w.report(turn{Kind: kindError, Lock: r.kind, Lost: err.Error()})
				}
				continue
			}
			w.report(turn{Kind: kindClosed, Lock: r.kind, Release: text(r.close())})
		}
	}
}

// The orders of followWork but orderShow, and kinds of the reports of workers that follow.
const (
	orderSet   = "set "  // and data: set the data of what is kept
	orderClose = "close" // close what is kept
	kindCache  = "cache"
	kindView   = "view"
	kindShown  = "shown" // the last line of a report
	kindState  = "state" // the state of the client is another one
	kindClosed = "closed"
	kindBegins = "begins" // a write, the outcome of which is told with the last line, if the process lives
)

// followedCache is a cache with its events.
type followedCache struct {
	*cache.Cache
	scope scope

	mu      sync.Mutex
	changes []change
}

// cacheReport is what a worker tells of a cache.
type cacheReport struct {
	Ready   bool
	Content map[string]version
	Changes []change // since the last report
}

// followSubtree starts a cache of each scope.
func (f *follower) followSubtree() error {
	for _, s := range scopes {
		c := &followedCache{scope: s}
		var err error
		c.Cache, err = cache.New(f.worker.client, s.root, append(s.options(), cache.WithListener(c.note))...)
		if err != nil {
			return err
		}
		f.caches = append(f.caches, c)
	}
	return nil
}

func (c *followedCache) note(e cache.Event) {
	noted := change{At: now(), Kind: e.Kind, Path: e.Path()}
	if e.Old != nil {
		old := c.scope.held(e.Old)
		noted.Old = &old
	}
	if e.New != nil {
		held := c.scope.held(e.New)
		noted.New = &held
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, noted)
}

func (c *followedCache) report() *cacheReport {
	c.mu.Lock()
	changes := c.changes
	c.changes = nil
	c.mu.Unlock()
	_, stale := c.StaleSince()
	r := &cacheReport{Ready: !stale, Content: map[string]version{}, Changes: changes}
	for at, n := range c.All() {
		r.Content[at] = c.scope.held(n)
	}
	return r
}

// viewed are the paths of a worker's persistent watches: those of its locks, and one above them.
var viewed = map[string]framework.WatchMode{
	"/siege":                 framework.WatchTree,
	siegeMutex:               framework.WatchNode,
	siegeBusy:                framework.WatchTree,
	siegeRW:                  framework.WatchTree,
	siegePermits + "/leases": framework.WatchTree,
	siegeElection:            framework.WatchTree,
}

// view is a persistent watch with its events.
type view struct {
	path string

	mu     sync.Mutex
	events []viewEvent
	others int // events of other nodes than marks
}

// viewEvent is an event of a mark, or zk.EventNotWatching, or zk.EventNodeChildrenChanged of the path
// of the watch.
type viewEvent struct {
	Type zk.EventType
	Path string `json:",omitempty"`
}

// viewReport is what a worker tells of a persistent watch.
type viewReport struct {
	Events []viewEvent // since the last report
	Others int
}

// isMark reports whether a node is one that the siege makes for persistent watches.
func isMark(node string) bool { return strings.Contains(node, "/mark-") }

func (v *view) hear(e framework.WatchEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case e.Type == zk.EventNotWatching, e.Type == zk.EventNodeChildrenChanged:
		v.events = append(v.events, viewEvent{Type: e.Type})
	case isMark(e.Path):
		v.events = append(v.events, viewEvent{e.Type, e.Path})
	default:
		v.others++
	}
}

func (v *view) report() *viewReport {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := &viewReport{v.events, v.others}
	v.events, v.others = nil, 0
	return r
}

// watchLocks follows the paths of the locks with persistent watches, if the servers know them, and
// with one-shot watches.
func (f *follower) watchLocks(ctx context.Context) error {
	f.followOnce(ctx)
	for path, mode := range viewed {
		if f.worker.Older {
			break
		}
		v := &view{path: path}
		if err := f.addWatch(ctx, path, mode, v.hear); err != nil {
			return err
		}
		f.views = append(f.views, v)
	}
	return nil
}

// addWatch outlasts faults: it is called when a worker starts.
func (f *follower) addWatch(
	ctx context.Context, path string, mode framework.WatchMode, fn func(framework.WatchEvent),
) error {
	for {
		_, err := f.worker.client.AddWatch(ctx, path, mode, fn)
		if err == nil || !f.worker.client.Outlast(ctx, err) {
			return err
		}
	}
}

// oneShot reads a node each time that a one-shot watch fires.
type oneShot struct {
	client *framework.Client
	path   string
	kind   string // "data" or "children"

	mu   sync.Mutex
	zxid int64 // the last that changed what was read; 0: there is no node
}

// followOnce starts to follow the paths of the locks with one-shot watches. Their goroutines end with
// ctx.
func (f *follower) followOnce(ctx context.Context) {
	for path := range viewed {
		for _, kind := range []string{"data", "children"} {
			s := &oneShot{client: f.worker.client, path: path, kind: kind}
			f.shots = append(f.shots, s)
			f.worker.running.Go(func() { s.follow(ctx) })
		}
	}
	f.worker.running.Go(func() {
		for ctx.Err() == nil {
			for _, err := range leader.Observe(ctx, f.worker.client, siegeElection) {
				if !isExpected(err) {
					f.worker.report(turn{Kind: kindError, Lock: siegeElection, Lost: err.Error()})
				}
			}
			pause(ctx, time.Second)
		}
	})
}

func (s *oneShot) follow(ctx context.Context) {
	for ctx.Err() == nil {
		zxid, w, err := s.read(ctx)
		if err != nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.zxid = zxid
		s.mu.Unlock()
		select {
		case <-w.Fired():
			pause(ctx, 100*time.Millisecond) // the queue of a busy lock changes all the time
		case <-ctx.Done():
		}
	}
}

func (s *oneShot) read(ctx context.Context) (zxid int64, w *framework.Watch, err error) {
	var stat *zk.Stat
	if s.kind == "data" {
		_, stat, w, err = s.client.GetW(ctx, s.path)
	} else {
		_, stat, w, err = s.client.ChildrenW(ctx, s.path)
	}
	if errors.Is(err, zk.ErrNoNode) {
		if stat, w, err = s.client.ExistsW(ctx, s.path); stat != nil {
			err = zk.ErrNodeExists // it has just been created: read again
		}
	}
	switch {
	case err != nil, stat == nil:
		return 0, w, err
	case s.kind == "data":
		return stat.Mzxid, w, nil
	}
	return stat.Pzxid, w, nil
}

func (s *oneShot) report() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zxid
}

// key names a one-shot watch in reports.
func (s *oneShot) key() string { return fmt.Sprintf("%s of %s", s.kind, s.path) }

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
