package cache

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/recipes/internal/pause"
)

// follower reads what has changed. All its fields belong to the goroutine of run, which is also the
// only one that writes the tree. Other goroutines put functions into its inbox; run calls them in
// order.
type follower struct {
	*Cache
	ctx     context.Context
	inbox   *listen.Mailbox[func()]
	source  source
	session *framework.Session // nil: the connection is lost
	broken  bool               // the connection is lost, or everything has to be checked
	gap     bool               // the root was not read since the connection came back
	missed  int                // the number of jobs for what may have been missed until then
	jobs    map[string]*job    // all paths to read
	queue   []*job             // those that wait for another read to end
	next    []read             // to be sent
	reads   int                // under way
	alone   bool               // the servers do not know reads that share a request
	failed  []*job             // to read again after a pause
	pause   <-chan time.Time   // nil: nothing has failed
	pauses  int                // since the last success
}

// job reads one path.
type job struct {
	path     string
	check    bool   // read the Stat first: the node is in the tree
	verify   bool   // list the children if Pzxid has changed: changes may have been missed
	replaced bool   // the node may have been deleted and created again
	again    bool   // something has changed since the read was sent
	renewed  bool   // replaced was set since the read was sent
	alone    bool   // its read shares no request: one that it has shared has failed
	missed   bool   // the cache is not current before it has read this once
	below    []*job // of nodes below, which wait until this job is finished
}

// source reports changes to a follower, through its inbox.
type source interface {
	// taken is called with the watch of a read, if reads set watches, once the tree has what the
	// answer says.
	taken(path string, kind bridge.ReadKind, w *framework.Watch)
	// follow is called with the same watch, right after the answer was put into the inbox, by the
	// goroutine that reads the connection. So the events of watches and the answers to reads are in
	// the inbox in the order in which they came.
	follow(path string, kind bridge.ReadKind, w *framework.Watch)
	// oneShot reports whether each read must set a watch.
	oneShot() bool
	// mustList reports whether a list of the children must set a watch.
	mustList(path string) bool
	// ended returns a channel that is closed when the servers do not know this kind of watch any
	// more.
	ended() <-chan struct{}
	stop()
}

// run follows the subtree until ctx ends, the client is closed or the cache is full.
func (c *Cache) run(ctx context.Context) {
	defer c.end()
	defer c.stop()
	f := &follower{
		Cache: c, ctx: ctx, inbox: listen.NewMailbox[func()](), jobs: map[string]*job{}, broken: true,
	}
	defer f.drain()
	f.source = newSource(f)
	defer func() { f.source.stop() }()
	for c.err == nil {
		f.startReads()
		select {
		case <-f.inbox.Signal():
			f.handleAll()
		case <-f.pause:
			f.retryFailed()
		case <-f.source.ended():
			f.handleAll() // what the source has told before
			f.source.stop()
			f.source = newOneShot(f)
		case <-ctx.Done():
			c.err = ErrClosed
		case <-c.client.Done():
			c.err = framework.ErrClosed
		}
		f.checkCurrent()
	}
}

// tell has run call fn, unless the cache has ended by then.
func (f *follower) tell(fn func()) {
	f.inbox.Put(func() {
		if f.err == nil {
			fn()
		}
	})
}

// drain handles what has come before the end.
func (f *follower) drain() {
	f.inbox.Close()
	f.handleAll()
}

// handleAll handles what is in the inbox.
func (f *follower) handleAll() {
	handlers, _ := f.inbox.Take()
	for _, handle := range handlers {
		handle()
	}
}

// checkCurrent notes that the cache is current if it has read everything once. It does not wait for
// reads of later changes, because these may never cease.
func (f *follower) checkCurrent() {
	if f.err != nil || f.broken || f.gap || f.missed > 0 {
		return
	}
	select {
	case <-f.current:
	default:
		f.setCurrent()
	}
}

// broke notes that the connection was lost.
func (f *follower) broke(at time.Time) {
	f.broken, f.session = true, nil
	f.setStale(at)
}

// connected takes the current session. It reports false if the follower must wait for the next
// report of its source, or end.
func (f *follower) connected() bool {
	session, err := f.client.Session(f.ctx)
	f.broken, f.session = err != nil, session
	f.gap = true
	return err == nil
}

// reset checks everything, because changes may have been missed.
func (f *follower) reset() {
	f.setStale(time.Now())
	if !f.connected() {
		return
	}
	f.want(f.root)
	for at := range f.tree.entries {
		j := f.want(at)
		j.check, j.verify = true, true
		j.replace()
	}
	f.sortQueue()
}

// sortQueue has parents read before their children.
func (f *follower) sortQueue() {
	slices.SortFunc(f.queue, func(a, b *job) int { return strings.Compare(a.path, b.path) })
}

// want reads a path, or reads it again if that has begun.
func (f *follower) want(at string) *job {
	j, there := f.jobs[at]
	if there {
		j.again, j.check = true, false
		return j
	}
	j = &job{path: at}
	f.jobs[at] = j
	f.queue = append(f.queue, j)
	return j
}

// replace notes that the node may have been deleted and created again.
func (j *job) replace() { j.replaced, j.renewed = true, true }

// waitAbove reports whether a node above that of a job may be another one than in the tree. Then
// the job waits until it is known: its node may be a child of a parent that is not in the tree yet.
func (f *follower) waitAbove(j *job) bool {
	for at := j.path; at != f.root; {
		at = path.Dir(at)
		if above, there := f.jobs[at]; there && above.replaced {
			above.below = append(above.below, j)
			return true
		}
	}
	return false
}

// answered handles the answer to a read, and makes the next read of the job.
func (f *follower) answered(j *job, a answer) {
	absent := a.err == nil && a.stat == nil || errors.Is(a.err, zk.ErrNoNode)
	switch {
	case absent && a.kind != bridge.ReadStat && f.source.oneShot() && j.path == f.root:
		f.wantRead(j, bridge.ReadStat) // it sets a watch for the creation
	case absent:
		f.apply(func(t *tree) []Event { return t.remove(j.path) })
		j.verify = false
		f.finish(j)
	case a.kind == bridge.ReadChildren:
		f.listed(j, a)
	case a.err != nil:
		f.refused(j, &Node{Path: j.path, Err: a.err})
	case a.kind == bridge.ReadStat && f.mustReadData(j.path, a.stat):
		f.wantRead(j, bridge.ReadData)
	default:
		f.put(j, a)
	}
}

// mustReadData reports whether the data of a node with this Stat is not in the tree.
func (f *follower) mustReadData(at string, stat *zk.Stat) bool {
	if f.cfg.namesOnly {
		return false
	}
	e, there := f.tree.entries[at]
	return !there || e.node.Stat.Czxid != stat.Czxid || e.node.Stat.Mzxid != stat.Mzxid || e.node.Err != nil
}

// put puts the node of an answer into the tree, and lists its children if they may be others than
// those in the tree.
func (f *follower) put(j *job, a answer) {
	if !f.putNode(f.node(j, a)) {
		return
	}
	e, there := f.tree.entries[j.path]
	if !there || !f.listsChildren(j.path) || !f.mustList(j, e) {
		j.verify = false
		f.finish(j)
		return
	}
	f.wantRead(j, bridge.ReadChildren)
}

// mustList reports whether the children of a node have to be listed: to set a watch, and where the
// node is new or changes may have been missed.
func (f *follower) mustList(j *job, e *entry) bool {
	stat := e.node.Stat
	switch {
	case f.source.mustList(j.path):
		return true
	case e.listed == 0 && stat.NumChildren == 0:
		e.listed = stat.Pzxid // children that are created from now on are reported
	}
	return e.listed == 0 || j.verify && e.listed != stat.Pzxid
}

// refused puts a node into the tree that cannot be read, or whose children cannot be listed. The
// children are listed after the next read.
func (f *follower) refused(j *job, n *Node) {
	j.verify = false
	if !f.putNode(n) {
		return
	}
	if e, there := f.tree.entries[j.path]; there {
		e.listed = 0
	}
	f.finish(j)
}

// putNode puts a node into the tree. It reports false if the cache has ended because it is full.
func (f *follower) putNode(n *Node) bool {
	f.apply(func(t *tree) []Event { return t.put(n) })
	f.checkLimit()
	return f.err == nil
}

// checkLimit ends the cache if it exceeds the limit. While a node of the tree may not exist any more,
// it may have twice as much.
func (f *follower) checkLimit() {
	err := f.full(1)
	if err != nil && (!f.mayBeGone() || f.full(2) != nil) {
		f.err = err
	}
}

// mayBeGone reports whether the tree may have a node that does not exist any more.
func (f *follower) mayBeGone() bool {
	for at, j := range f.jobs {
		if _, there := f.tree.entries[at]; there && j.replaced {
			return true
		}
	}
	return false
}

// node makes the node of an answer. A read of the Stat alone leaves the data as it is.
func (f *follower) node(j *job, a answer) *Node {
	n := &Node{Path: j.path, Data: a.data, Stat: *a.stat}
	switch {
	case f.cfg.namesOnly:
		n.Data = nil
	case a.kind == bridge.ReadStat:
		old := f.tree.entries[j.path].node
		n.Data, n.Err = old.Data, old.Err
	case f.cfg.compressed:
		n.Data, n.Err = decompress(a.data)
	}
	return n
}

// listed removes the children that are not in the list, and reads those that are not in the tree.
func (f *follower) listed(j *job, a answer) {
	e, there := f.tree.entries[j.path]
	if there && a.err != nil {
		n := *e.node
		n.Err = fmt.Errorf("list the children: %w", a.err)
		f.refused(j, &n)
		return
	}
	j.verify = false
	if there {
		e.listed = a.stat.Pzxid
		now := make(map[string]struct{}, len(a.children))
		for _, name := range a.children {
			now[name] = struct{}{}
		}
		for _, name := range missing(e.children, now) {
			f.apply(func(t *tree) []Event { return t.remove(path.Join(j.path, name)) })
		}
		for _, name := range missing(now, e.children) {
			if child := path.Join(j.path, name); f.covers(child) {
				if below := f.want(child); j.missed {
					f.miss(below)
				}
			}
		}
	}
	f.finish(j)
}

// missing returns the keys of a set that another one does not have, sorted.
func missing(set, in map[string]struct{}) (keys []string) {
	for key := range set {
		if _, there := in[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// miss has the cache be current only after a job.
func (f *follower) miss(j *job) {
	if !j.missed {
		j.missed = true
		f.missed++
	}
}

// finish ends a job, or queues it again if something has changed since.
func (f *follower) finish(j *job) {
	defer f.checkLimit()
	f.pauses = 0
	j.alone = false
	f.found(j)
	if !j.again {
		delete(f.jobs, j.path)
	} else {
		f.queue = append(f.queue, j)
	}
	if j.replaced = j.renewed; j.replaced {
		return
	}
	below := j.below
	j.below = nil
	if _, there := f.tree.entries[j.path]; there {
		f.queue = append(f.queue, below...)
		return
	}
	f.drop(below) // each node below is read if this one is created
}

// found notes that a path was read, or is known not to exist. Whatever was missed before a read of
// the root is to be read when that is answered.
func (f *follower) found(j *job) {
	if f.gap && j.path == f.root {
		f.gap = false
		for _, other := range f.jobs {
			f.miss(other)
		}
	}
	if j.missed {
		j.missed = false
		f.missed--
	}
}

// drop ends jobs without a read.
func (f *follower) drop(jobs []*job) {
	for _, j := range jobs {
		f.found(j)
		delete(f.jobs, j.path)
		f.drop(j.below)
	}
}

// fail queues a job again after a pause.
func (f *follower) fail(j *job) {
	f.failed = append(f.failed, j)
	if f.pause == nil {
		f.pause = time.After(pause.After(f.pauses))
		f.pauses++
	}
}

// retryFailed queues the jobs that have failed.
func (f *follower) retryFailed() {
	f.queue, f.failed, f.pause = append(f.queue, f.failed...), nil, nil
}
