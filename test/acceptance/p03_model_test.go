package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p03Contenders = 3
	p03Turns      = 3 // holds of each contender
	p03Faults     = 8 // of one schedule
)

// Three contenders take turns in random schedules, 300 here and 10,000 in "make seeds". Meanwhile
// sessions expire, connections drop, lock nodes are deleted, and requests, replies and events are
// lost or late. There are never two valid holds, tokens grow, each contender gets all its turns,
// and no node is left.
func TestP03_OneValidHoldInRandomSchedules(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	sim.Run(t, 300, p03Schedule) // make seeds runs all 10,000
}

func p03Schedule(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	m := &p03Model{t: t, srv: srv, revoked: map[string]int64{}, holds: map[string]*recipes.Hold{}}
	var running sync.WaitGroup
	for i := range p03Contenders {
		name := fmt.Sprintf("c%d", i)
		source := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		c := bubbleNew(t, srv, srv.MemAddr(), name, framework.WithRandom(source.Int64N))
		mu := bubbleMutex(t, c, "/lock")
		pauses := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		running.Go(func() { m.contend(name, mu, pauses) })
	}
	for range p03Faults {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		m.harm(srv.Client(fmt.Sprintf("c%d", random.IntN(p03Contenders))), random)
	}
	running.Wait()
	// Late requests can no longer arrive.
	time.Sleep(2 * bubbleTimeout)
	// The server may have reaped the parent.
	require.Contains(t, []string{"", "/lock container\n"}, srv.Tree())
}

// p03Model has the holds that may be valid.
type p03Model struct {
	t   *testing.T
	srv *zktest.Server

	mu      sync.Mutex
	revoked map[string]int64 // the last transaction before a contender's session was ended
	deleted []string         // lock nodes that were deleted by a fault
	holds   map[string]*recipes.Hold
	last    int64 // the largest token of a valid hold
}

func (m *p03Model) contend(name string, mu *mutex.Mutex, random *rand.Rand) {
	for range p03Turns {
		hold, err := mu.Acquire(m.t.Context())
		if err != nil {
			m.t.Errorf("%s: %v", name, err)
			return
		}
		m.granted(name, hold)
		most := 2 * time.Second
		if random.IntN(4) == 0 {
			most = 2 * bubbleTimeout // long enough to lose the session
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(most)))):
		case <-hold.Done():
		}
		m.leave(name)
		_ = hold.Release()
	}
}

// valid reports whether a hold is valid by its own account and by the model. A hold whose session
// or node was removed by a fault is not counted, because a client cannot know that at once.
func (m *p03Model) valid(name string, h *recipes.Hold) bool {
	for _, node := range m.deleted {
		if h.Path() == node {
			return false
		}
	}
	return h.Err() == nil && h.Token() > m.revoked[name]
}

// granted compares a new hold with all others. A hold that has ended is never valid again. So if
// two are valid at one moment, they are so at the beginning of one of them.
func (m *p03Model) granted(name string, h *recipes.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.valid(name, h) {
		return
	}
	for other, held := range m.holds {
		if m.valid(other, held) {
			m.t.Errorf("%s holds with token %d while %s holds with token %d", name, h.Token(), other, held.Token())
		}
	}
	if h.Token() <= m.last {
		m.t.Errorf("token %d of %s after %d", h.Token(), name, m.last)
	}
	m.holds[name], m.last = h, h.Token()
}

func (m *p03Model) leave(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holds, name)
}

// harm applies one random fault to a contender.
func (m *p03Model) harm(c *zktest.Client, random *rand.Rand) {
	ops := []fault.Op{
		fault.OpCreate, fault.OpGetData, fault.OpGetChildren2, fault.OpDelete, fault.OpSync,
		fault.OpCloseSession, fault.AnyOp,
	}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	late := time.Duration(random.Int64N(int64(2 * bubbleTimeout)))
	switch random.IntN(8) {
	case 0:
		m.expire(c)
	case 1:
		c.Drop()
	case 2:
		m.srv.On(match, fault.DropBefore())
	case 3:
		m.srv.On(match, fault.DropAfter())
	case 4:
		m.srv.On(match, fault.Delay(late))
	case 5:
		c.Cut() // delays all present and later messages
		time.AfterFunc(late, c.Heal)
	case 6:
		c.HoldEvents()
		time.AfterFunc(late, c.ReleaseEvents)
	case 7:
		m.deleteNode(random)
	}
}

func (m *p03Model) expire(c *zktest.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range c.Sessions() {
		_ = s.Expire() // fails if it has ended
	}
	if entries := m.srv.Trace().Tail(1).Entries; len(entries) > 0 {
		m.revoked[c.Name()] = entries[0].Zxid
	}
}

// deleteNode deletes the node of a random holder or waiter.
func (m *p03Model) deleteNode(random *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, err := m.srv.Children("/lock")
	if err != nil || len(names) == 0 {
		return
	}
	node := p03Queue(names)[random.IntN(len(names))]
	m.deleted = append(m.deleted, node)
	_ = m.srv.Delete(node)
}
