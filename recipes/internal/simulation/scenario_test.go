package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	sessionTimeout = 4 * time.Second
	patience       = 10 * time.Second // bounds the acquire of a free lock
)

// scenario describes a simulation.
type scenario struct {
	aim     *testlock.Aim
	menu    []action
	members int // clients
	workers int // goroutines of each client
	turns   int // of each worker
	faults  int

	followers int  // servers that lag behind
	restless  bool // clients move from server to server all the time
	closing   bool // clients are closed and replaced
	taking    bool // the test expires sessions and deletes nodes
	elections bool
	foreign   bool // the locks' paths have data and other children
	ending    bool // the sequence counters of the paths are near their end
}

// aim aims faults at the requests of all recipes and of reconnects.
func aim(t *testing.T) *testlock.Aim {
	return testlock.NewAim(t, fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpExists, fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
}

// reaping makes the server delete empty containers soon.
var reaping = zktest.WithConfig("znode.container.checkIntervalMs", "300")

// All recipes run on one server.
func TestSimulatedRecipes(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 6, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		run(t, srv, random, scenario{
			aim: aim, menu: everything, members: 3, workers: 3, turns: 15, faults: 18,
			closing: random.IntN(3) == 0, taking: random.IntN(3) == 0, elections: random.IntN(3) == 0,
			foreign: random.IntN(3) == 0, ending: random.IntN(3) == 0,
		})
	}, reaping)
}

// All recipes run on a server and a follower that lags behind.
func TestSimulatedRecipesWithAFollower(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 6, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		run(t, srv, random, scenario{
			aim: aim, menu: everything, members: 3, workers: 3, turns: 15, faults: 18, followers: 1,
			closing: random.IntN(3) == 0, taking: random.IntN(3) == 0, elections: random.IntN(3) == 0,
			ending: random.IntN(3) == 0,
		})
	}, reaping)
}

// All recipes run while clients move from server to server all the time.
func TestSimulatedRestlessClients(t *testing.T) {
	for _, compat := range []zktest.Compat{zktest.V39, zktest.V38} {
		t.Run(fmt.Sprint(compat), func(t *testing.T) {
			aim := aim(t)
			sim.Run(t, 4, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				run(t, srv, random, scenario{
					aim: aim, menu: everything, members: 3, workers: 3, turns: 15, faults: 10, followers: 2,
					restless:  true,
					elections: random.IntN(4) == 0, ending: random.IntN(3) == 0,
				})
			}, reaping, zktest.WithCompat(compat))
		})
	}
}

// Semaphores are used while clients move from server to server all the time.
func TestSimulatedRestlessPermits(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 6, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		run(t, srv, random, scenario{
			aim: aim, menu: onlyPermits, members: 3, workers: 4, turns: 24, faults: 10, followers: 2, restless: true,
		})
	}, reaping)
}

// simulation is a running scenario.
type simulation struct {
	scenario
	t         *testing.T
	srv       *zktest.Server
	random    *rand.Rand
	checker   *checker
	strikes   *testlock.Faults // at clients and their requests
	followers []*zktest.Follower
	members   []*member
	metrics   testzk.Metrics
}

func run(t *testing.T, srv *zktest.Server, random *rand.Rand, sc scenario) {
	s := &simulation{scenario: sc, t: t, srv: srv, random: random, checker: newChecker(t, srv)}
	s.strikes = sc.aim.Faults(t, srv, random, sessionTimeout)
	s.prepare()
	var working, electing sync.WaitGroup
	candidacy, stop := context.WithCancel(t.Context())
	defer stop()
	check := s.candidates(candidacy, &electing)
	for _, m := range s.members {
		for i := range sc.workers {
			w := s.worker(m, fmt.Sprint("w", i))
			working.Go(func() { w.run(sc.menu, sc.turns) })
		}
	}
	calm := s.disturb()
	working.Wait()
	calm()
	s.setLimit(fixedLimit)
	time.Sleep(2 * sessionTimeout)
	stop()
	electing.Wait()
	time.Sleep(5 * sessionTimeout)
	check()
	s.checker.finish()
	s.finish()
}

// prepare creates the nodes that exist before the first client connects.
func (s *simulation) prepare() {
	require.NoError(s.t, s.srv.Create(limitPath, number(fixedLimit)))
	s.setLimit(fixedLimit)
	for _, p := range append(slices.Clone(multiPaths), rwPath) {
		require.NoError(s.t, s.srv.Create(dataPath+p, nil))
	}
	for _, dir := range directories() {
		if s.foreign && s.random.IntN(2) == 0 {
			s.fill(dir)
		}
		if s.ending {
			require.NoError(s.t, s.srv.Create(dir+"/keep", nil))
			require.NoError(s.t, s.srv.SetSequence(dir, int32(1<<31-1-s.random.IntN(12))))
		}
	}
	servers := []string{s.srv.MemAddr()}
	for range s.scenario.followers {
		f := s.srv.Follower(upTo(s.random, time.Second))
		s.followers, servers = append(s.followers, f), append(servers, f.MemAddr())
	}
	for i := range s.scenario.members {
		m := &member{
			t: s.t, srv: s.srv, name: fmt.Sprint("c", i), servers: strings.Join(servers, ","), random: fork(s.random),
			options: []framework.Option{
				framework.WithMetrics(&s.metrics),
				framework.WithLossPolicy(framework.LossPolicy(max(0, s.random.IntN(4)-2))),
			},
		}
		m.open()
		s.members = append(s.members, m)
	}
}

// directories returns the paths of all directories with lock nodes.
func directories() []string {
	all := append(slices.Clone(multiPaths), nestedPath, rwPath, electionPath, latchPath)
	for _, p := range []string{sharedPath, slotsPath, fixedPath} {
		all = append(all, p+"/locks", p+"/leases")
	}
	return all
}

// fill gives a directory data and children that are no lock nodes.
func (s *simulation) fill(dir string) {
	if strings.Count(dir, "/") == 1 {
		require.NoError(s.t, s.srv.Create(dir, []byte("data of "+dir)))
	}
	for _, name := range []string{"x", ".tmp", "lock-abc", "-x", "lock-", "zz__lock__", "lock-99999999999999"} {
		require.NoError(s.t, s.srv.Create(dir+"/"+name, nil))
	}
}

func (s *simulation) setLimit(n int) { require.NoError(s.t, s.srv.Set(limitPath, number(n))) }

func number(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func (s *simulation) worker(m *member, id string) *worker {
	return &worker{member: m, id: m.name + "." + id, random: fork(s.random), checker: s.checker}
}

// candidates runs and observes elections until ctx ends. check checks the last reports of the
// observers.
func (s *simulation) candidates(ctx context.Context, electing *sync.WaitGroup) (check func()) {
	if !s.elections {
		return func() {}
	}
	c := must(framework.New(s.srv.MemAddr(), framework.WithDialer(s.srv.Client("observer").DialContext),
		framework.WithSessionTimeout(sessionTimeout)))
	observing, stop := context.WithCancel(context.Background())
	observers := map[string]*observer{}
	for _, p := range []string{electionPath, latchPath} {
		observers[p] = observe(observing, c, p)
	}
	for _, m := range s.members {
		for i := range 2 {
			w := s.worker(m, fmt.Sprint("e", i))
			electing.Go(func() { w.elect(ctx) })
		}
		w := s.worker(m, "l")
		electing.Go(func() { w.latch(ctx) })
	}
	return func() {
		for p, o := range observers {
			if node := o.node.Load(); node == nil || *node != "" {
				s.t.Errorf("the last leader reported for %s is %v", p, node)
			}
		}
		stop()
		require.NoError(s.t, c.Close())
	}
}

// finish checks that nothing is left and that every lock can be acquired.
func (s *simulation) finish() {
	for _, m := range s.members {
		l := m.current()
		all := []lock{
			l.plain, l.handoff, l.rw.Write(), several{l.shared, 2}, several{l.slots, 2}, several{l.fixed, 3},
		}
		for _, one := range all {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			h, err := one.TryAcquire(ctx)
			cancel()
			require.NoError(s.t, err, "%s: %T cannot be acquired in the end", m.name, one)
			_ = h.Release()
			if one == lock(l.handoff) {
				time.Sleep(2 * sessionTimeout) // its node is kept until then
			}
		}
		m.close()
	}
	for _, dir := range directories() {
		if data, err := s.srv.Get(dir); s.foreign && err == nil && len(data) > 4 { // a fixed limit has 4 bytes
			require.Equal(s.t, "data of "+dir, string(data))
		}
	}
	require.Empty(s.t, s.metrics.Levels())
}

// passing reports whether err says that a parent was deleted repeatedly while it was being created.
func passing(err error) bool { return errors.Is(err, zk.ErrNoNode) }
