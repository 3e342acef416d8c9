package testlock

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

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
}

// UseOf returns the use of a lock with one path by a hold that excludes all others.
func UseOf(h *recipes.Hold) Use { return Use{Nodes: h.Paths(), Token: h.Token(), Err: h.Err} }

// Model compares the uses of locks by all clients. It knows which lock nodes were deleted by the
// test: their clients cannot know that at once.
type Model struct {
	// SameToken says that nodes are passed on, so a use may have the token of the one before.
	SameToken bool

	t   testing.TB
	srv *zktest.Server

	mu     sync.Mutex
	taken  map[string]bool  // lock nodes that the test deleted
	uses   []Use            // that may be valid
	last   map[string]Use   // the last exclusive use, by lock
	shared map[string]int64 // the largest token of a shared use, by lock
}

// NewModel returns a model of all locks on a server.
func NewModel(t testing.TB, srv *zktest.Server) *Model {
	return &Model{t: t, srv: srv, taken: map[string]bool{}, last: map[string]Use{}, shared: map[string]int64{}}
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
	clear(m.last)
	clear(m.shared)
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

// Begin notes a use that has just begun, and reports whether it is valid. If it is, no other use
// that excludes it may be valid, and its token must be larger than those of the earlier uses that
// exclude it. A use that has ended is never valid again. So if two are valid at one moment, they are
// so at the beginning of one of them.
func (m *Model) Begin(u Use) (valid bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = slices.DeleteFunc(m.uses, func(u Use) bool { return !m.validLocked(u) })
	if !m.validLocked(u) {
		return false
	}
	for _, other := range m.uses {
		if other.excludes(u) && m.validLocked(other) {
			m.t.Errorf("%v is valid while %v is", u, other)
		}
	}
	m.orderLocked(u)
	m.uses = append(m.uses, u)
	return true
}

// Valid reports whether a use is valid by its own account and by that of the model.
func (m *Model) Valid(u Use) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.validLocked(u)
}

// Valids returns the number of valid uses.
func (m *Model) Valids() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = slices.DeleteFunc(m.uses, func(u Use) bool { return !m.validLocked(u) })
	return len(m.uses)
}

func (m *Model) validLocked(u Use) bool {
	return u.Err() == nil && !slices.ContainsFunc(u.Nodes, func(node string) bool { return m.taken[node] })
}

// orderLocked checks the token of a valid use against those of earlier ones.
func (m *Model) orderLocked(u Use) {
	last, found := m.last[u.Lock]
	same := m.SameToken || u.By != nil && u.By == last.By
	if found && (u.Token < last.Token || u.Token == last.Token && !same) {
		m.t.Errorf("%v follows %v", u, last)
	}
	if shared, found := m.shared[u.Lock]; found && !u.Shared && !u.Beside && u.Token <= shared {
		m.t.Errorf("%v follows a shared use with token %d", u, shared)
	}
	if u.Shared {
		m.shared[u.Lock] = max(m.shared[u.Lock], u.Token)
	} else {
		m.last[u.Lock] = u
	}
}

func (u Use) excludes(other Use) bool {
	return u.Lock == other.Lock && !(u.Shared && other.Shared) && (u.By == nil || u.By != other.By)
}

// String returns a description for messages.
func (u Use) String() string {
	return strings.Join(u.Nodes, " ") + " with token " + strconv.FormatInt(u.Token, 10)
}
