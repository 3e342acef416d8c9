package simulation_test

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// node is a lock node, as the server's transactions tell of it.
type node struct {
	path    string
	created int64 // the transaction
	deleted int64 // the transaction; 0 while it is there
	taken   bool  // the test has deleted it, or expired its session: the client cannot know
	jumped  bool  // it is a lease that was created without a place in the queue while others had one
}

// kind is how a hold excludes others.
type kind int

const (
	exclusive kind = iota // a mutex, or a term of a leader
	reading
	writing
	downgraded // reading beside a write hold
	upgraded   // writing beside a read hold
	permits
)

func (k kind) String() string {
	return [...]string{"exclusive", "reading", "writing", "downgraded", "upgraded", "permits"}[k]
}

func (k kind) shared() bool { return k == reading || k == downgraded }

// valid is what a hold and a term have in common.
type valid interface{ Err() error }

// record is a hold of one lock.
type record struct {
	valid
	kind   kind
	owner  string
	lock   string   // its path
	nodes  []string // the paths
	token  int64
	family *record // the hold beside which it is
	slots  []int
}

// limitChange is a limit and the transaction that set it.
type limitChange struct {
	zxid  int64
	limit int
}

// checker compares holds with the server's transactions.
type checker struct {
	t     *testing.T
	begun time.Time

	mu      sync.Mutex
	nodes   map[string]*node            // all that there have been, by path
	queues  map[string]map[string]*node // those that are there, by directory
	holders map[string][]*record        // by the path of the node
	current map[string][]*record        // those of a lock that may be valid
	latest  map[string]*record          // the last exclusive hold of a lock
	largest map[string]tokens
	taken   []*record // permits
	limits  []limitChange
	guarded map[string]int64 // the token in nodes that are written with Guard
	pending sync.WaitGroup   // checks that have begun
}

// tokens are the largest tokens of a read-write lock.
type tokens struct{ writer, any int64 }

func newChecker(t *testing.T, srv *zktest.Server) *checker {
	c := &checker{
		t: t, begun: time.Now(), nodes: map[string]*node{}, queues: map[string]map[string]*node{},
		holders: map[string][]*record{}, current: map[string][]*record{}, latest: map[string]*record{},
		largest: map[string]tokens{}, guarded: map[string]int64{},
	}
	srv.OnCommit(c.commit)
	return c
}

func (c *checker) errorf(format string, args ...any) {
	c.t.Errorf("%v: "+format, append([]any{time.Since(c.begun)}, args...)...)
}

// commit notes a transaction. It is called with the server's lock held.
func (c *checker) commit(zxid int64, changes []zktest.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := map[string]*node{} // the place that the transaction gives up, by semaphore
	for _, change := range changes {
		if dir := path.Dir(change.Path); change.Kind == zktest.NodeDeleted && path.Base(dir) == "locks" {
			left[path.Dir(dir)] = c.nodes[change.Path]
		}
	}
	for _, change := range changes {
		switch change.Kind {
		case zktest.NodeCreated:
			if isLockNode(change.Path) {
				c.create(zxid, change.Path, left)
			}
		case zktest.NodeDeleted:
			c.remove(zxid, change.Path)
		case zktest.NodeDataChanged:
			c.write(zxid, change)
		}
	}
}

// isLockNode reports whether the name of a node is that of a lock node.
func isLockNode(p string) bool {
	name := path.Base(p)
	for _, marker := range []string{"lock-", "__lock__", "__rlock__", "__READ__", "__WRIT__", "lease-", "latch-"} {
		if i := strings.LastIndex(name, marker); i >= 0 {
			_, err := strconv.ParseInt(name[i+len(marker):], 10, 32)
			return err == nil
		}
	}
	return false
}

func (c *checker) create(zxid int64, p string, left map[string]*node) {
	n, dir := &node{path: p, created: zxid}, path.Dir(p)
	if path.Base(dir) == "leases" {
		queue := c.queues[path.Dir(dir)+"/locks"]
		place := left[path.Dir(dir)]
		n.jumped = place == nil && len(queue) > 0
		for _, other := range queue {
			if place != nil && other.created < place.created {
				c.errorf("%s takes permits with place %d while %d is in the queue", p, place.created, other.created)
			}
		}
	}
	if c.queues[dir] == nil {
		c.queues[dir] = map[string]*node{}
	}
	c.nodes[p], c.queues[dir][p] = n, n
}

func (c *checker) remove(zxid int64, p string) {
	n := c.nodes[p]
	if n == nil {
		return
	}
	n.deleted = zxid
	delete(c.queues[path.Dir(p)], p)
	for _, r := range c.holders[p] {
		c.pending.Go(func() { c.over(r, n) }) // not under the server's lock
	}
}

// over checks a hold at the instant at which the servers can give its lock to another client.
func (c *checker) over(r *record, n *node) {
	err := r.Err()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && !n.taken {
		c.errorf("%s (%v of %s, token %d) is deleted as of %d, and the hold is valid", n.path, r.kind, r.owner, r.token, n.deleted)
	}
}

func (c *checker) write(zxid int64, change zktest.Change) {
	switch {
	case change.Path == limitPath:
		c.limits = append(c.limits, limitChange{zxid, int(change.Data[3])})
	case path.Dir(change.Path) == dataPath:
		token, _ := strconv.ParseInt(string(change.Data), 10, 64)
		if token < c.guarded[change.Path] {
			c.errorf("%s is written with token %d after %d", change.Path, token, c.guarded[change.Path])
		}
		c.guarded[change.Path] = token
	}
}

// isValid reports whether a hold is valid by its own account, and the test has not taken its nodes
// away. It needs mu.
func (c *checker) isValid(r *record) bool {
	return r.Err() == nil && !slices.ContainsFunc(r.nodes, func(p string) bool { return c.nodes[p] != nil && c.nodes[p].taken })
}

// begin checks a hold that has just been acquired.
func (c *checker) begin(r *record) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range r.nodes {
		c.holders[p] = append(c.holders[p], r)
	}
	if r.kind == permits {
		c.taken = append(c.taken, r)
	}
	if !c.isValid(r) {
		return r
	}
	for _, p := range r.nodes {
		switch n := c.nodes[p]; {
		case n == nil:
			c.errorf("%s holds %s, which has never been there", r.owner, p)
		case n.deleted != 0 && r.Err() == nil:
			c.errorf("%s holds %s, which is deleted since %d", r.owner, p, n.deleted)
		case n.jumped:
			c.errorf("%s has taken %s ahead of the queue", r.owner, p)
		}
	}
	if r.kind != permits {
		c.checkConflicts(r)
		c.checkOrder(r)
	}
	return r
}

func (c *checker) checkConflicts(r *record) {
	all := slices.DeleteFunc(c.current[r.lock], func(other *record) bool { return !c.isValid(other) })
	for _, other := range all {
		family := r.family == other || other.family == r || r.family != nil && r.family == other.family
		if !family && !(r.kind.shared() && other.kind.shared()) {
			c.errorf("%s: %v of %s with token %d while %v of %s with token %d is valid",
				r.lock, r.kind, r.owner, r.token, other.kind, other.owner, other.token)
		}
	}
	c.current[r.lock] = append(all, r)
}

// checkOrder checks a hold against the tokens of those before, and the nodes ahead of its own.
func (c *checker) checkOrder(r *record) {
	last, all := c.latest[r.lock], c.largest[r.lock]
	switch r.kind {
	case exclusive:
		if last != nil && (r.token < last.token || r.token == last.token && r.nodes[0] != last.nodes[0]) {
			c.errorf("%s: token %d of %s after %d of %s", r.lock, r.token, r.owner, last.token, last.owner)
		}
		c.latest[r.lock] = r
	case reading:
		if r.token < all.writer {
			c.errorf("%s: %s reads with %d after a write with %d", r.lock, r.owner, r.token, all.writer)
		}
		all.any = max(all.any, r.token)
	case writing:
		if r.token < all.any {
			c.errorf("%s: %s writes with %d after %d", r.lock, r.owner, r.token, all.any)
		}
		all.any, all.writer = max(all.any, r.token), max(all.writer, r.token)
	case upgraded:
		all.writer = max(all.writer, r.token)
		fallthrough
	default:
		return // it is at the place of another
	}
	c.largest[r.lock] = all
	for _, n := range c.queues[r.lock] {
		if n.created < r.token && (r.kind != reading || strings.Contains(n.path, "__WRIT__")) {
			c.errorf("%s: %s holds with %d while %s of %d is ahead", r.lock, r.owner, r.token, n.path, n.created)
		}
	}
}

// takeAway marks nodes whose clients cannot know that they are gone, because action deletes them.
func (c *checker) takeAway(nodes []string, action func()) {
	c.mu.Lock()
	for _, p := range nodes {
		if n := c.nodes[p]; n != nil {
			n.taken = true
		}
	}
	c.mu.Unlock()
	action()
}

// finish checks what can be told when all is over.
func (c *checker) finish() {
	c.pending.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.taken {
		c.checkPermits(r)
	}
	for dir, queue := range c.queues {
		for _, n := range queue {
			c.errorf("%s: %s of %d is left", dir, n.path, n.created)
		}
	}
}

// checkPermits counts the permits as of the transaction that has taken some.
func (c *checker) checkPermits(r *record) {
	sum := 0
	for _, other := range c.taken {
		if other.lock != r.lock || other.token > r.token || c.ended(other) <= r.token {
			continue
		}
		sum += len(other.nodes)
		for _, slot := range other.slots {
			if other != r && slices.Contains(r.slots, slot) {
				c.errorf("%s: slot %d is that of tokens %d and %d", r.lock, slot, other.token, r.token)
			}
		}
	}
	limit := fixedLimit
	if r.lock != fixedPath {
		limit = c.limitAt(r.token)
	}
	if sum > limit {
		c.errorf("%s: %d permits of %d as of %d", r.lock, sum, limit, r.token)
	}
}

// ended returns the transaction that has deleted the first node of a hold.
func (c *checker) ended(r *record) int64 {
	end := int64(1 << 62)
	for _, p := range r.nodes {
		if n := c.nodes[p]; n != nil && n.deleted != 0 {
			end = min(end, n.deleted)
		}
	}
	return end
}

// limitAt returns the shared limit before a transaction.
func (c *checker) limitAt(zxid int64) (limit int) {
	for _, l := range c.limits {
		if l.zxid < zxid {
			limit = l.limit
		}
	}
	return limit
}
