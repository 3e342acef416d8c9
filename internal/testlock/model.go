package testlock

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// Use is a hold of a lock, as a simulation sees it.
type Use struct {
	By    any      // uses by the same value do not exclude each other; nil excludes all others
	Lock  string   // uses of different locks do not exclude each other
	Nodes []string // paths of the lock nodes
	Token int64
	Err   func() error

	Shared bool // it does not exclude other shared uses
	Beside bool // it has the position of an earlier use by the same value

	Called int64 // when the acquire began, by Model.Now; 0 for now
	Slots  []int // of a semaphore with slots
}

// UseOf returns the use of a lock with one path by a hold that excludes all others.
func UseOf(h *recipes.Hold) Use { return Use{Nodes: h.Paths(), Token: h.Token(), Err: h.Err} }

// Model records when the uses of locks by all clients begin and until when they are valid. When the
// test ends, it checks the history of each lock. It knows which lock nodes were deleted by the test:
// their clients cannot know that at once.
type Model struct {
	// SameToken says that nodes are passed on, so a use may have the token of the one before.
	SameToken bool
	// Permits makes all locks semaphores with that limit.
	Permits int

	t   testing.TB
	srv *zktest.Server

	mu        sync.Mutex
	clock     int64           // counts what happens
	taken     map[string]bool // lock nodes that the test deleted
	uses      []recorded      // that may be valid
	count     int             // of all uses
	wiped     int
	members   map[any]int // numbers of the values of Use.By
	histories map[string][]history.Op
}

// recorded is a use with its number, and when it was valid the last time that it was asked.
type recorded struct {
	Use
	number int
	last   int64
}

// NewModel returns a model of all locks on a server.
func NewModel(t testing.TB, srv *zktest.Server) *Model {
	m := &Model{t: t, srv: srv, taken: map[string]bool{}, members: map[any]int{}, histories: map[string][]history.Op{}}
	t.Cleanup(m.check)
	return m
}

// Now returns the time by the clock of the histories.
func (m *Model) Now() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nowLocked()
}

func (m *Model) nowLocked() int64 {
	m.clock++
	return m.clock
}

// Expire ends all sessions of a client on the server.
func (m *Model) Expire(c *zktest.Client) {
	m.Take(func() {
		for _, s := range c.Sessions() {
			_ = s.Expire() // fails if it has ended
		}
	})
}

// DeleteNode deletes a random node in one of the directories.
func (m *Model) DeleteNode(random *rand.Rand, directories ...string) {
	if node := m.random(random, directories); node != "" {
		m.Take(func() { _ = m.srv.Delete(node) }) // fails if it was deleted
	}
}

// ChangeNode changes the data of a random node in one of the directories, as a revocation does.
func (m *Model) ChangeNode(random *rand.Rand, directories ...string) {
	if node := m.random(random, directories); node != "" {
		_ = m.srv.Set(node, []byte("__REVOKE__")) // fails if it was deleted
	}
}

// random returns a random node in one of the directories, or nothing.
func (m *Model) random(random *rand.Rand, directories []string) string {
	nodes := m.Nodes(directories[random.IntN(len(directories))])
	if len(nodes) == 0 {
		return ""
	}
	return nodes[random.IntN(len(nodes))]
}

// Nodes returns the paths of the lock nodes in a directory, by sequence number. Their order is
// reproducible, and other parts of the names are not.
func (m *Model) Nodes(directory string) (nodes []string) {
	for _, session := range m.srv.Sessions() {
		for _, node := range session.Ephemerals {
			if strings.HasPrefix(node, directory+"/") {
				nodes = append(nodes, node)
			}
		}
	}
	slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(sequence(a), sequence(b)) })
	return nodes
}

func sequence(node string) string { return node[max(0, len(node)-len("0000000000")):] }

// Take calls action, which deletes lock nodes, and notes which ones.
func (m *Model) Take(action func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.ephemerals()
	action()
	after := m.ephemerals()
	for node := range before {
		m.taken[node] = m.taken[node] || !after[node]
	}
}

// Forget forgets all tokens: those of later uses may be smaller. The server was wiped.
func (m *Model) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wiped++
}

func (m *Model) ephemerals() map[string]bool {
	all := map[string]bool{}
	for _, session := range m.srv.Sessions() {
		for _, node := range session.Ephemerals {
			all[node] = true
		}
	}
	return all
}

// Begin records a use that has just begun, and reports whether it is valid. A use that has ended is
// never valid again. So if two are valid at one moment, they are so at the beginning of one of them,
// when both are asked.
func (m *Model) Begin(u Use) (valid bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	if valid = m.validLocked(u); valid {
		m.count++
		m.recordLocked(u.Lock, history.Op{Call: cmp.Or(u.Called, now), Return: now, What: m.acquireLocked(u)})
		m.uses = append(m.uses, recorded{Use: u, number: m.count, last: now})
	}
	m.askLocked()
	return valid
}

func (m *Model) acquireLocked(u Use) history.Acquire {
	a := history.Acquire{
		Hold: m.count, Name: strings.Join(u.Nodes, " "), Token: u.Token, Wiped: m.wiped,
		Shared: u.Shared, Beside: u.Beside, Passed: m.SameToken,
	}
	if u.By != nil {
		if m.members[u.By] == 0 {
			m.members[u.By] = len(m.members) + 1
		}
		a.By = m.members[u.By]
	}
	if m.Permits > 0 {
		a.Permits, a.Slots = len(u.Nodes), u.Slots
	}
	return a
}

// SetLimit changes the limit of the permits of a lock. set returns the transaction.
func (m *Model) SetLimit(lock string, permits int, set func() (zxid int64)) {
	call := m.Now()
	zxid := set()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recordLocked(lock, history.Op{
		Call: call, Return: m.nowLocked(), What: history.Limit{Zxid: zxid, Permits: permits},
	})
}

func (m *Model) recordLocked(lock string, op history.Op) {
	m.histories[lock] = append(m.histories[lock], op)
}

// askLocked asks all uses whether they are valid. The end of those that are not is recorded at the last
// moment at which they were.
func (m *Model) askLocked() {
	valid := m.uses[:0]
	for _, u := range m.uses {
		if m.validLocked(u.Use) {
			valid = append(valid, u)
			continue
		}
		m.recordLocked(u.Lock, history.Op{Call: u.last, Return: u.last, What: history.End{Hold: u.number}})
	}
	m.uses = valid
	now := m.nowLocked()
	for i := range m.uses {
		m.uses[i].last = now
	}
}

// Valids returns the number of valid uses.
func (m *Model) Valids() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.askLocked()
	return len(m.uses)
}

func (m *Model) validLocked(u Use) bool {
	return u.Err() == nil && !slices.ContainsFunc(u.Nodes, func(node string) bool { return m.taken[node] })
}

// check checks all histories.
func (m *Model) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for lock, ops := range m.histories {
		var first history.State = history.Lock{}
		if m.Permits > 0 {
			first = history.Semaphore{Permits: m.Permits}
		}
		if err := history.Check(first, ops); err != nil {
			m.t.Errorf("the history of lock %q is wrong: %v", lock, err)
		}
	}
}
