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

// node is a lock node as the server's transactions show it.
type node struct {
	path    string
	created int64 // transaction that created the node
	deleted int64 // transaction that deleted it, or 0
	taken   bool  // the test deleted it or ended its session, or that expired early: the client cannot know at once
	jumped  bool  // a lease created without a queue node of its own while the queue was not empty
}

// kind tells how a hold excludes others.
type kind int

const (
	exclusive kind = iota // of a mutex, or a term of a leader
	reading
	writing
	downgraded // reading under a write hold
	upgraded   // writing under a read hold
	permits
)

func (k kind) String() string {
	return [...]string{"exclusive", "reading", "writing", "downgraded", "upgraded", "permits"}[k]
}

func (k kind) shared() bool { return k == reading || k == downgraded }

// valid is a hold or a term.
type valid interface{ Err() error }

// record is a hold of one lock.
type record struct {
	valid
	kind    kind
	owner   string
	lock    string   // path of the lock
	nodes   []string // paths of the nodes
	token   int64
	partner *record // the hold that this one shares the lock with
	slots   []int
}

// limitChange is a limit with the transaction that set it.
type limitChange struct {
	zxid  int64
	limit int
}

// checker compares holds with the server's transactions.
type checker struct {
	t       *testing.T
	srv     *zktest.Server
	start   time.Time
	shorter bool // servers may grant shorter timeouts than before

	mu      sync.Mutex
	nodes   map[string]*node            // all that ever existed, by path
	queues  map[string]map[string]*node // existing nodes by directory
	holders map[string][]*record        // by the path of the node
	current map[string][]*record        // holds of a lock that may be valid
	latest  map[string]*record          // last exclusive hold of a lock
	largest map[string]tokens
	taken   []*record // permits
	limits  []limitChange
	guarded map[string]int64 // the token in each node that is written with Guard
	begun   int              // holds so far
	pending sync.WaitGroup   // running checks
}

// tokens has the largest tokens of a read-write lock.
type tokens struct{ writer, any int64 }

// newChecker returns a checker. others are called with each transaction, too.
func newChecker(t *testing.T, srv *zktest.Server, others ...func([]zktest.Change)) *checker {
	c := &checker{
		t: t, srv: srv, start: time.Now(), nodes: map[string]*node{}, queues: map[string]map[string]*node{},
		holders: map[string][]*record{}, current: map[string][]*record{}, latest: map[string]*record{},
		largest: map[string]tokens{}, guarded: map[string]int64{},
	}
	srv.OnCommit(func(zxid int64, changes []zktest.Change) {
		c.commit(zxid, changes)
		for _, other := range others {
			other(changes)
		}
	})
	return c
}

func (c *checker) errorf(format string, args ...any) {
	c.t.Errorf("%v: "+format, append([]any{time.Since(c.start)}, args...)...)
}

// commit records a transaction. The server's lock is held.
func (c *checker) commit(zxid int64, changes []zktest.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	deleted := map[string]*node{} // the queue node that the transaction deletes, by semaphore
	for _, change := range changes {
		if dir := path.Dir(change.Path); change.Kind == zktest.NodeDeleted && path.Base(dir) == "locks" {
			deleted[path.Dir(dir)] = c.nodes[change.Path]
		}
	}
	for _, change := range changes {
		switch change.Kind {
		case zktest.NodeCreated:
			if isLockNode(change.Path) {
				c.createLocked(zxid, change.Path, deleted)
			}
		case zktest.NodeDeleted:
			c.removeLocked(zxid, change.Path)
		case zktest.NodeDataChanged:
			c.writeLocked(zxid, change)
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

func (c *checker) createLocked(zxid int64, p string, deleted map[string]*node) {
	n, dir := &node{path: p, created: zxid}, path.Dir(p)
	if path.Base(dir) == "leases" {
		queue := c.queues[path.Dir(dir)+"/locks"]
		own := deleted[path.Dir(dir)]
		n.jumped = own == nil && len(queue) > 0
		for _, other := range queue {
			if own != nil && other.created < own.created {
				c.errorf("%s takes permits with queue node %d while %d is ahead", p, own.created, other.created)
			}
		}
	}
	if c.queues[dir] == nil {
		c.queues[dir] = map[string]*node{}
	}
	c.nodes[p], c.queues[dir][p] = n, n
}

func (c *checker) removeLocked(zxid int64, p string) {
	n := c.nodes[p]
	if n == nil {
		return
	}
	n.deleted = zxid
	delete(c.queues[path.Dir(p)], p)
	holds := c.holders[p]
	c.pending.Go(func() { c.checkEnded(n, holds) }) // outside of the server's lock
}

// checkEnded checks that the holds of a node have ended when the servers can give its lock to another client. If
// the servers have expired the session before any timeout that the client knows of, the holds must end once the
// shortest of these has passed: docs/guarantees.md assumes that the client hears of each timeout.
func (c *checker) checkEnded(n *node, holds []*record) {
	valid := slices.DeleteFunc(slices.Clone(holds), func(r *record) bool { return r.Err() != nil })
	if len(valid) == 0 || c.isTaken(n) {
		return
	}
	if early := c.expiredEarly(valid[0], n); early > 0 {
		c.take(n.path) // another hold may be valid meanwhile
		time.Sleep(early)
	}
	for _, r := range valid {
		if r.Err() == nil {
			c.errorf("%s (%v of %s, token %d) is deleted as of %d, but the hold is valid",
				n.path, r.kind, r.owner, r.token, n.deleted)
		}
	}
}

// expiredEarly returns by how much the timeout that has expired the session of a hold is shorter than all those
// that the client has heard of. It returns 0 if a request has deleted the node.
func (c *checker) expiredEarly(r *record, n *node) time.Duration {
	if !c.shorter {
		return 0
	}
	client, _, _ := strings.Cut(r.owner, ".")
	trace := c.srv.Trace()
	if trace.Lost > 0 {
		c.errorf("the trace has lost %d entries, and with them what the clients have heard", trace.Lost)
	}
	all := trace.Entries
	for _, e := range slices.Backward(all) {
		if e.What == "expired" && e.Client == client && e.Zxid+1 == n.deleted { // its transaction is the next one
			return max(0, shortest(all, e.Session)-e.Timeout)
		}
	}
	return 0
}

// shortest returns the shortest timeout of a session that its client has heard of: it has sent a request since.
// It returns 0 if there is none.
func shortest(all []zktest.Entry, session string) (heard time.Duration) {
	for _, e := range all {
		if e.Session == session && e.Timeout > 0 && e.What != "expired" && (heard == 0 || e.Timeout < heard) {
			heard = e.Timeout
		}
	}
	return heard
}

func (c *checker) isTaken(n *node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.taken
}

func (c *checker) writeLocked(zxid int64, change zktest.Change) {
	switch {
	case change.Path == limitPath:
		c.limits = append(c.limits, limitChange{zxid, int(change.Data[3])})
	case path.Dir(change.Path) == dataPath:
		number, holding, _ := strings.Cut(string(change.Data), " ")
		token, _ := strconv.ParseInt(number, 10, 64)
		if token < c.guarded[change.Path] {
			c.errorf("%s is written with token %d after %d", change.Path, token, c.guarded[change.Path])
		}
		if n := c.nodes[holding]; n == nil || n.deleted != 0 {
			c.errorf("%s is written with token %d, without the node %s of the hold", change.Path, token, holding)
		}
		c.guarded[change.Path] = token
	}
}

// isValid reports whether a hold reports that it is valid and the test has not taken its nodes.
func (c *checker) isValid(r *record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isValidLocked(r)
}

// isValidLocked reports whether a hold reports that it is valid and the test has not taken its
// nodes.
func (c *checker) isValidLocked(r *record) bool {
	taken := func(p string) bool { return c.nodes[p] != nil && c.nodes[p].taken }
	return r.Err() == nil && !slices.ContainsFunc(r.nodes, taken)
}

// begin checks a hold that was just acquired.
func (c *checker) begin(r *record) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	for _, p := range r.nodes {
		c.holders[p] = append(c.holders[p], r)
	}
	if r.kind == permits || r.lock == singlePath {
		c.taken = append(c.taken, r)
	}
	if !c.isValidLocked(r) {
		return r
	}
	for _, p := range r.nodes {
		switch n := c.nodes[p]; {
		case n == nil:
			c.errorf("%s holds %s, which never existed", r.owner, p)
		case n.deleted != 0 && r.Err() == nil && c.shorter:
			c.pending.Go(func() { c.checkEnded(n, []*record{r}) })
		case n.deleted != 0 && r.Err() == nil:
			c.errorf("%s holds %s, which was deleted by %d", r.owner, p, n.deleted)
		case n.jumped:
			c.errorf("%s has taken %s ahead of the queue", r.owner, p)
		}
	}
	if r.kind != permits {
		c.checkConflictsLocked(r)
		c.checkOrderLocked(r)
	}
	return r
}

func (c *checker) checkConflictsLocked(r *record) {
	all := slices.DeleteFunc(c.current[r.lock], func(other *record) bool { return !c.isValidLocked(other) })
	for _, other := range all {
		partner := r.partner == other || other.partner == r || r.partner != nil && r.partner == other.partner
		if !partner && !(r.kind.shared() && other.kind.shared()) {
			c.errorf("%s: %v of %s with token %d while %v of %s with token %d is valid",
				r.lock, r.kind, r.owner, r.token, other.kind, other.owner, other.token)
		}
	}
	c.current[r.lock] = append(all, r)
}

// checkOrderLocked checks a hold against the tokens of earlier holds and the nodes ahead of its own.
func (c *checker) checkOrderLocked(r *record) {
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
		return // it has the position of its partner
	}
	c.largest[r.lock] = all
	for _, n := range c.queues[r.lock] {
		if n.created < r.token && (r.kind != reading || strings.Contains(n.path, "__WRIT__")) {
			c.errorf("%s: %s holds with %d while %s of %d is ahead", r.lock, r.owner, r.token, n.path, n.created)
		}
	}
}

// takeAway calls action, which deletes nodes. It marks them first, because their clients cannot know
// it at once.
func (c *checker) takeAway(nodes []string, action func()) {
	c.take(nodes...)
	action()
}

// take marks nodes whose clients cannot know at once that they are deleted.
func (c *checker) take(nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range nodes {
		if n := c.nodes[p]; n != nil {
			n.taken = true
		}
	}
}

// finish makes the checks that need all transactions.
func (c *checker) finish() {
	c.pending.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.taken {
		c.checkPermitsLocked(r)
	}
	for dir, queue := range c.queues {
		for _, n := range queue {
			c.errorf("%s: %s, created by %d, is left", dir, n.path, n.created)
		}
	}
}

// checkPermitsLocked counts the permits as of the transaction that took those of r.
func (c *checker) checkPermitsLocked(r *record) {
	sum := 0
	for _, other := range c.taken {
		if other.lock != r.lock || other.token > r.token || c.ended(other) <= r.token {
			continue
		}
		sum += len(other.nodes)
		for _, slot := range other.slots {
			if other != r && slices.Contains(r.slots, slot) {
				c.errorf("%s: slot %d is used by tokens %d and %d", r.lock, slot, other.token, r.token)
			}
		}
	}
	if limit := c.limitOf(r); sum > limit {
		c.errorf("%s: %d permits of %d as of %d", r.lock, sum, limit, r.token)
	}
}

// limitOf returns the limit of a hold's permits.
func (c *checker) limitOf(r *record) int {
	switch r.lock {
	case singlePath:
		return 1
	case fixedPath:
		return fixedLimit
	}
	return c.limitAt(r.token)
}

// ended returns the first transaction that deleted a node of a hold.
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
