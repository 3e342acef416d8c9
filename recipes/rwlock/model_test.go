package rwlock_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// model knows who may hold.
type model struct {
	t   *testing.T
	srv *zktest.Server

	mu       sync.Mutex
	holds    []use
	expelled map[string]int64 // the transaction up to which everything of a client has been taken away
	deleted  []string         // the lock nodes that were taken away
	wrote    use              // the last
	read     int64            // the largest token of a reader
}

// use is a hold of a member.
type use struct {
	*recipes.Hold
	by    *member
	write bool
}

// valid says whether a hold should be valid, and believes so: of what is taken away out of the blue, no client can know at once.
func (m *model) valid(u use) bool {
	return u.Token() > m.expelled[u.by.client] && !slices.Contains(m.deleted, u.Path()) && u.Err() == nil
}

// use notes a hold that begins. It is beside if it has the place of another one.
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
			m.t.Errorf("%s, write %v, token %d, while %s, write %v, holds with %d", a.name, write, h.Token(), u.by.name, u.write, u.Token())
		}
	}
	m.order(own, beside)
	m.holds = append(m.holds, own)
}

// order checks the tokens: readers and writers against writers, and writers that are not beside a read hold against readers too.
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

// harm takes something away, or does something to a client.
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

// expel takes away all that a client has.
func (m *model) expel(c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expelled[c.Name()] = m.srv.Trace().Tail(1).Entries[0].Zxid
}

// deleteOne deletes the node of somebody who holds or waits.
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

// disturb does one thing to a client. What would last is over before a session's end, most of the time.
func disturb(srv *zktest.Server, c *zktest.Client, random *rand.Rand) {
	ops := []zktest.Op{zktest.OpCreate, zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2, zktest.OpSync, zktest.AnyOp}
	match := zktest.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(7) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		srv.On(match, zktest.DropBefore())
	case 3:
		srv.On(match, zktest.DropAfter())
	case 4:
		srv.On(match, zktest.Delay(time.Duration(random.Int64N(int64(simTimeout)))))
	case 5:
		c.Cut()
		time.AfterFunc(time.Duration(random.Int64N(int64(2*simTimeout))), c.Heal)
	case 6:
		c.HoldEvents()
		time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), c.ReleaseEvents)
	}
}
