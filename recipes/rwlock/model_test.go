package rwlock_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// model checks the holds of all members.
type model struct {
	t   *testing.T
	srv *zktest.Server

	mu       sync.Mutex
	holds    []use
	expelled map[string]int64 // the last transaction in which the test expired the client's sessions
	deleted  []string         // lock nodes that the test deleted
	wrote    use              // the last write hold
	read     int64            // the largest token of a reader
}

// use is a hold of a member.
type use struct {
	*recipes.Hold
	by    *member
	write bool
}

// valid reports whether a hold is valid. It reports false if the test deleted its node or expired
// its session: the client cannot know that at once.
func (m *model) valid(u use) bool {
	return u.Token() > m.expelled[u.by.client] && !slices.Contains(m.deleted, u.Path()) && u.Err() == nil
}

// use records and checks a new hold. beside reports whether it has the position of another hold.
func (a *member) use(h *recipes.Hold, write, beside bool) {
	m, own := a.model, use{h, a, write}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = slices.DeleteFunc(m.holds, func(u use) bool { return u.Err() != nil })
	if !m.valid(own) {
		return
	}
	for _, u := range m.holds {
		if u.by != a && (write || u.write) && m.valid(u) {
			m.t.Errorf("%s, write %v, token %d, while %s, write %v, holds with %d",
				a.name, write, h.Token(), u.by.name, u.write, u.Token())
		}
	}
	m.order(own, beside)
	m.holds = append(m.holds, own)
}

// order checks the token of u against those of writers. A writer that is not beside a read hold is
// checked against readers too.
func (m *model) order(u use, beside bool) {
	if last := m.wrote; last.by != nil && (u.Token() < last.Token() || u.Token() == last.Token() && u.by != last.by) {
		m.t.Errorf("token %d of %s after %d of the writer %s", u.Token(), u.by.name, last.Token(), last.by.name)
	}
	if u.write && !beside && u.Token() <= m.read {
		m.t.Errorf("token %d of the writer %s after %d of a reader", u.Token(), u.by.name, m.read)
	}
	if u.write {
		m.wrote = u
	} else {
		m.read = max(m.read, u.Token())
	}
}

// harm expires sessions, deletes a node or applies another fault to a client.
func (m *model) harm(c *zktest.Client, random *rand.Rand) {
	switch random.IntN(8) {
	case 0:
		m.expel(c)
	case 1:
		m.deleteOne(random)
	default:
		disturb(m.srv, c, random)
	}
}

// expel expires all sessions of a client.
func (m *model) expel(c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expelled[c.Name()] = m.srv.Trace().Tail(1).Entries[0].Zxid
}

// deleteOne deletes a random lock node.
func (m *model) deleteOne(random *rand.Rand) {
	names, _ := m.srv.Children("/lock")
	if len(names) == 0 {
		return
	}
	node := "/lock/" + names[random.IntN(len(names))]
	m.mu.Lock()
	m.deleted = append(m.deleted, node)
	m.mu.Unlock()
	_ = m.srv.Delete(node)
}

// disturb applies a random fault to a client. Most faults end before a session would expire.
func disturb(srv *zktest.Server, c *zktest.Client, random *rand.Rand) {
	ops := []fault.Op{
		fault.OpCreate, fault.OpMulti, fault.OpDelete, fault.OpGetChildren2, fault.OpSync, fault.AnyOp,
	}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(7) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		srv.On(match, fault.DropBefore())
	case 3:
		srv.On(match, fault.DropAfter())
	case 4:
		srv.On(match, fault.Delay(time.Duration(random.Int64N(int64(simTimeout)))))
	case 5:
		c.Cut()
		time.AfterFunc(time.Duration(random.Int64N(int64(2*simTimeout))), c.Heal)
	case 6:
		c.HoldEvents()
		time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), c.ReleaseEvents)
	}
}
