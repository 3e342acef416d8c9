package group_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simTimeout = 4 * time.Second
	simMembers = 3
	simRounds  = 4
	simFaults  = 4 // of a round
	// quiet is long enough for everything that the faults have caused.
	quiet = 3*simTimeout + 5*time.Second
)

// Networks flap, sessions are lost, other clients delete nodes, members leave and join again, and
// the group is reaped. When that is over, the members that have joined are listed once, with their
// last payloads, and all watchers know the same.
func TestSimulatedGroups(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpSetData, fault.OpDelete, fault.OpGetData, fault.OpExists,
		fault.OpGetChildren2, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		connect := srv.MemAddr()
		if random.IntN(2) == 0 {
			connect = sim.Ensemble(srv, random, 2)
		}
		w := &world{t: t, srv: srv, random: random, calm: client(t, srv, "calm")}
		w.faults = aim.Faults(t, srv, random, simTimeout)
		for i := range simMembers {
			w.connect(fmt.Sprintf("c%d", i), connect)
		}
		for range simRounds {
			w.disturb()
			time.Sleep(quiet)
			w.check()
		}
		for _, m := range w.members {
			m.leave(t)
		}
		time.Sleep(quiet)
		w.check()
		require.Empty(t, srv.Tree())
	}, reaped)
}

// world is a group.
type world struct {
	t        *testing.T
	srv      *zktest.Server
	random   *rand.Rand
	faults   *testlock.Faults
	calm     *framework.Client // without faults
	members  []*simMember
	watchers []*watcher
}

// simMember is a member that leaves and joins again.
type simMember struct {
	client  *framework.Client
	id      string
	payload string
	member  *group.Membership // nil: it has left
}

func (w *world) connect(name, connect string) {
	policies := []retry.Policy{retry.Never(), retry.Times(20, 100*time.Millisecond)}
	c, err := framework.New(connect,
		framework.WithRetry(policies[w.random.IntN(len(policies))]),
		framework.WithDialer(w.srv.Client(name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithRandom(rand.New(rand.NewPCG(w.random.Uint64(), 1)).Int64N))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Close()) })
	for i := range 2 {
		w.members = append(w.members, &simMember{client: c, id: fmt.Sprintf("%s-%d", name, i)})
	}
	w.watchers = append(w.watchers, watch(w.t, c, path))
}

func (w *world) disturb() {
	var using sync.WaitGroup
	for _, m := range w.members {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 0))
		using.Go(func() { m.use(w.t, random) })
	}
	for range simFaults {
		time.Sleep(time.Duration(w.random.Int64N(int64(2 * time.Second))))
		w.harm()
	}
	time.Sleep(2 * simTimeout)
	sim.Calm(w.srv)
	w.srv.ResetFaults()
	using.Wait()
}

// use joins, leaves and sets payloads.
func (m *simMember) use(t *testing.T, random *rand.Rand) {
	for i := range 4 {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		switch random.IntN(3) {
		case 0:
			m.leave(t)
		case 1:
			if m.member == nil {
				m.join(t)
			}
		default:
			if m.member != nil {
				m.payload = fmt.Sprint("payload ", i, random.IntN(1000))
				if err := m.member.SetPayload([]byte(m.payload)); err != nil {
					t.Errorf("%s: %v", m.id, err)
				}
			}
		}
	}
}

func (m *simMember) join(t *testing.T) {
	m.payload = "joined"
	var err error
	m.member, err = group.Join(context.Background(), m.client, path, m.id, []byte(m.payload))
	if err != nil {
		t.Errorf("%s: %v", m.id, err)
	}
}

func (m *simMember) leave(t *testing.T) {
	if m.member == nil {
		return
	}
	if err := m.member.Close(); err != nil && !errors.Is(err, group.ErrPending) {
		t.Errorf("%s: %v", m.id, err)
	}
	m.member = nil
}

// harm makes a random fault.
func (w *world) harm() {
	srv, random := w.srv, w.random
	c := srv.Client(fmt.Sprintf("c%d", random.IntN(simMembers)))
	switch random.IntN(9) {
	case 0:
		for _, s := range c.Sessions() {
			_ = s.Expire()
		}
	case 1:
		if names, _ := srv.Children(path); len(names) > 0 {
			slices.Sort(names)
			_ = srv.Delete(path + "/" + names[random.IntN(len(names))])
		}
	case 2:
		sim.Disturb(srv, random, simTimeout)
	default:
		w.faults.Strike(c)
	}
}

// check checks all members and watchers when nothing has happened for some time.
func (w *world) check() {
	var want []string
	for _, m := range w.members {
		if m.member != nil {
			require.NoError(w.t, m.member.Err())
			require.NoError(w.t, m.member.WaitReady(testzk.Context(w.t)))
			want = append(want, m.id+"="+m.payload)
		}
	}
	slices.Sort(want)
	require.Equal(w.t, want, list(w.t, w.calm, path))
	for _, watcher := range w.watchers {
		errs, ended := watcher.state()
		require.False(w.t, ended, "%v", errs)
		require.Equal(w.t, want, watcher.members())
	}
}
