package page

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

const (
	// linger is for how long the picture is kept current after the last request.
	linger = time.Minute
	// fullAgain is the time between two readings of the whole tree while it changes.
	fullAgain = time.Minute
	// normalShare is the part of the time that is spent in reading at most: one in so many.
	normalShare = 10
	// beat is the time between two pictures of a tree that has become quiet: hand-overs of the last
	// minute become fewer.
	beat = 10 * time.Second
)

// tree keeps a picture of the objects below a node current while it is looked at. One persistent
// watch on the whole tree tells what changes. It is safe for concurrent use.
type tree struct {
	client   *framework.Client
	root     string
	interval time.Duration // between the begins of two readings, at least
	always   bool          // also while nothing looks
	linger   time.Duration
	share    time.Duration // one part of the time in so many is spent in reading, at most

	end      context.CancelFunc
	done     chan struct{}
	unlisten func()
	wake     chan struct{} // of one element: there is something to do, perhaps

	mu      sync.Mutex
	picture *picture
	next    chan struct{} // closed when another picture takes its place
	viewers int
	wanted  time.Time // the picture is kept current until then, without viewers, too
	live    bool      // the picture was read since the watch was set, and the watch is there
	changes changes
	work    work
}

// work is what a tree has done since it was started.
type work struct {
	readings int
	failures int
	time     time.Duration // of all readings
	events   int
}

// startTree starts to keep a picture. close ends that.
func startTree(client *framework.Client, root string, interval time.Duration, always bool) *tree {
	ctx, end := context.WithCancel(context.Background())
	t := &tree{
		client: client, root: root, interval: interval, always: always, linger: linger, share: normalShare,
		end: end, done: make(chan struct{}), wake: make(chan struct{}, 1),
		picture: &picture{root: root}, next: make(chan struct{}),
	}
	t.unlisten = client.Listen(func(framework.StateChange) { t.again() })
	go t.run(ctx)
	return t
}

// close ends the work of the tree, and waits for that.
func (t *tree) close() {
	t.unlisten()
	t.end()
	<-t.done
}

func (t *tree) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// look returns the present picture, and a channel that is closed when there is another one.
func (t *tree) look() (*picture, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.picture, t.next
}

// join keeps the picture current until leave is called.
func (t *tree) join() (leave func()) {
	t.mu.Lock()
	t.viewers++
	t.mu.Unlock()
	t.nudge()
	return func() {
		t.mu.Lock()
		t.viewers--
		t.wanted = time.Now().Add(t.linger)
		t.mu.Unlock()
		t.nudge()
	}
}

// current returns the present picture. If it is not kept current yet, current waits for that for
// patience at most. It reports whether it is.
func (t *tree) current(ctx context.Context, patience time.Duration) (now *picture, live bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for waited := false; ; waited = true {
		t.mu.Lock()
		t.wanted = time.Now().Add(t.linger)
		now, live = t.picture, t.live
		next := t.next
		t.mu.Unlock()
		if live || waited && now.err != nil {
			return now, live
		}
		t.nudge()
		select {
		case <-next:
		case <-timer.C:
			return now, false
		case <-ctx.Done():
			return now, false
		}
	}
}

// isLive reports whether the picture is kept current.
func (t *tree) isLive() bool {
	t.mu.Lock()
	live := t.live
	t.mu.Unlock()
	return live && t.client.State().IsConnected()
}

// again gives the picture another version, because the state of the connection has changed.
func (t *tree) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publishLocked(t.picture.copy())
}

func (t *tree) run(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		if t.isWanted() {
			t.follow(ctx)
			continue
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
		}
	}
}

func (t *tree) isWanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isWantedLocked()
}

func (t *tree) isWantedLocked() bool {
	return t.always || t.viewers > 0 || time.Now().Before(t.wanted)
}

// follow sets the watch, and reads what changes, until the picture is not wanted any more, the watch
// has ended, or ctx has.
func (t *tree) follow(ctx context.Context) {
	var ended <-chan struct{}
	watch, err := t.client.AddWatch(ctx, t.root, framework.WatchTree, t.note)
	blind := errors.Is(err, framework.ErrUnimplemented) // servers before 3.6 have no such watches
	switch {
	case err == nil:
		defer watch.Stop()
		ended = watch.Done()
	case !blind:
		t.fail(err)
		t.sleep(ctx, t.interval)
		return
	}
	t.mu.Lock()
	t.changes = changes{all: true, counted: newHandovers(time.Now())}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.live = false
		t.mu.Unlock()
	}()
	for ctx.Err() == nil {
		begun := time.Now()
		t.read(ctx)
		if t.rest(ctx, t.nextReading(begun), blind, ended) {
			return
		}
	}
}

// nextReading returns the earliest time for another reading, when the last one has ended.
func (t *tree) nextReading(begun time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return begun.Add(max(t.interval, t.share*time.Since(begun)))
}

func (t *tree) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// note takes an event of the watch.
func (t *tree) note(e framework.WatchEvent) {
	t.mu.Lock()
	first := !t.changes.any()
	t.work.events++
	if e.Type == zk.EventNotWatching {
		t.changes.all = true
	} else {
		t.changes.add(e.Path)
	}
	if e.Type == zk.EventNodeDeleted {
		t.changes.counted.add(path.Dir(e.Path), time.Now())
	}
	t.mu.Unlock()
	if first {
		t.nudge()
	}
}

// rest waits until something is to be read, and not before the given time. It reports whether that
// is the end: the picture is not wanted any more, or the watch has ended.
func (t *tree) rest(ctx context.Context, earliest time.Time, blind bool, ended <-chan struct{}) (end bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wanted := t.due(earliest, blind)
		if !wanted {
			return true
		}
		wait := time.Until(due)
		if wait <= 0 {
			return false
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		case <-ended:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// due returns when to look again at what there is to do.
func (t *tree) due(earliest time.Time, blind bool) (due time.Time, wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isWantedLocked() {
		return time.Time{}, false
	}
	due = time.Now().Add(time.Hour)
	sooner := func(at time.Time) {
		if at.Before(due) {
			due = at
		}
	}
	if blind || t.changes.any() {
		sooner(earliest)
	}
	if t.changes.partly {
		sooner(later(earliest, t.changes.full.Add(fullAgain)))
	}
	if t.changes.counted.busy() {
		sooner(later(earliest, t.picture.made.Add(beat)))
	}
	if !t.always && t.viewers == 0 && due.After(t.wanted) {
		due = t.wanted
	}
	return due, true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// read reads what has changed, all of it if that is less work, and makes another picture.
func (t *tree) read(ctx context.Context) {
	begun := time.Now()
	t.mu.Lock()
	old := t.picture
	changed, all := t.changes.take(begun)
	t.mu.Unlock()
	todo := plan{all: all}
	if !all {
		todo = old.planFor(changed)
	}
	items, err := t.carryOut(ctx, todo, old.items)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		t.fail(err)
		return
	}
	some := todo.all || len(todo.trees)+len(todo.single) > 0
	fresh := &picture{root: t.root, items: items, read: begun, took: time.Since(begun)}
	if some {
		fresh.cycles = t.deadlocks(ctx, items)
	} else {
		fresh.cycles, fresh.read, fresh.took = old.cycles, old.read, old.took
	}
	fresh.count()
	t.mu.Lock()
	defer t.mu.Unlock()
	if todo.all {
		t.changes.full, t.changes.partly = begun, false
	}
	if some {
		t.work.readings++
		t.work.time += fresh.took
	}
	t.live = true
	t.publishLocked(fresh)
}

// fail makes a picture that is the last one, with an error. All is to be read again.
func (t *tree) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes.all, t.live = true, false
	t.work.failures++
	failed := t.picture.copy()
	failed.err = err
	t.publishLocked(failed)
}

func (t *tree) publishLocked(p *picture) {
	now := time.Now()
	p.version, p.made = t.picture.version+1, now
	p.handovers, p.counting = t.changes.counted.sums(now), t.changes.counted.since
	t.picture = p
	close(t.next)
	t.next = make(chan struct{})
}

// carryOut reads what a plan has, and returns items with that.
func (t *tree) carryOut(ctx context.Context, todo plan, items []item) ([]item, error) {
	if todo.all {
		return t.walk(ctx, t.root)
	}
	for path := range todo.single {
		now, err := t.walk(ctx, path, inspect.WithDepth(0))
		if err != nil {
			return nil, err
		}
		at, there := slices.BinarySearchFunc(items, path, comparePath)
		if there && len(now) == 1 && now[0].Kind == items[at].Kind {
			items = slices.Clone(items)
			items[at] = now[0]
			continue
		}
		todo.trees[path] = true
	}
	for _, root := range todo.roots() {
		now, err := t.walk(ctx, root)
		if err != nil {
			return nil, err
		}
		items = replaced(items, root, now)
	}
	return items, nil
}

// walk returns what is at and below root. There is no error if root does not exist.
func (t *tree) walk(ctx context.Context, root string, opts ...inspect.Option) (items []item, err error) {
	for o, err := range inspect.Walk(ctx, t.client, root, append(opts, inspect.WithAll())...) {
		switch {
		case o == nil && errors.Is(err, zk.ErrNoNode):
			return nil, nil
		case o == nil:
			return nil, err
		}
		items = append(items, newItem(o, err))
	}
	return items, nil
}

// maxCycles is how many deadlocks are confirmed at each reading.
const maxCycles = 20

// deadlocks returns the cycles of sessions that were there as a whole.
func (t *tree) deadlocks(ctx context.Context, items []item) (cycles []inspect.Cycle) {
	for _, c := range inspect.Cycles(objectsOf(items)) {
		if len(cycles) == maxCycles {
			break
		}
		if there, err := inspect.Confirm(ctx, t.client, c); err != nil || there {
			cycles = append(cycles, c)
		}
	}
	return cycles
}

// maxChanges is how many changed paths are noted. If there are more, all is read.
const maxChanges = 10_000

// changes is what the watch has told since the last reading.
type changes struct {
	all     bool
	paths   map[string]bool
	full    time.Time // when the whole tree was read
	partly  bool      // a part of it was read since
	counted handovers
}

func (c *changes) any() bool { return c.all || len(c.paths) > 0 }

func (c *changes) add(path string) {
	if c.all {
		return
	}
	if c.paths == nil {
		c.paths = map[string]bool{}
	}
	if c.paths[path] = true; len(c.paths) > maxChanges {
		c.all, c.paths = true, nil
	}
}

// take returns the changed paths, or that all is to be read, and forgets that.
func (c *changes) take(now time.Time) (paths map[string]bool, all bool) {
	paths, all = c.paths, c.all || c.partly && now.Sub(c.full) >= fullAgain
	c.partly = c.partly || len(paths) > 0
	c.paths, c.all = nil, false
	return paths, all
}
