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

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

const (
	sessionTimeout = 4 * time.Second
	patience       = 30 * time.Second // bounds the acquire of a free lock, with servers that lag 1 s
	longest        = 5 * time.Minute  // bounds all calls, from the end of the faults
)

// simulation is one run.
type simulation struct {
	plan
	t         *testing.T
	srv       *zktest.Server
	random    *rand.Rand
	all       context.Context // ends all calls if the run hangs
	checker   *checker
	harms     *harms
	followers []*zktest.Follower
	members   []*member
	calm      *member // has no faults
	metrics   testzk.Metrics
	late      sync.WaitGroup // calls that may last until the end of the run

	counts   countDown
	parties  parties
	meeting  meeting
	shop     shop
	sum      sum
	value    value
	numbers  numbers
	resource resource
	kept     kept
	services services
	gate     gate

	mu    sync.Mutex
	calls map[string]int // that are running, by what they do
}

// run is one run.
func run(t *testing.T, srv *zktest.Server, random *rand.Rand, p plan) tally {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &simulation{plan: p, t: t, srv: srv, random: random, all: ctx, calls: map[string]int{}}
	s.checker = newChecker(t, srv, s.gate.commit)
	s.checker.shorter = p.hasFault("short timeouts")
	s.harms = newHarms(s)
	s.prepare()
	var working, electing sync.WaitGroup
	candidacy, stop := context.WithCancel(ctx)
	defer stop()
	check := s.candidates(candidacy, &electing)
	menu := s.menu()
	for _, m := range s.members {
		for i := range p.workers {
			w := m.worker(fmt.Sprint("w", i))
			working.Go(func() { w.run(menu, p.turns) })
		}
		if s.has("double barrier") {
			w := m.worker("d")
			s.late.Go(w.meet)
		}
	}
	s.harms.make()
	impatience := time.AfterFunc(longest, func() {
		s.errorf("calls hang: %s", s.list())
		cancel()
	})
	worked := make(chan struct{})
	if s.has("condition") {
		s.late.Go(func() { s.shop.fill(s, worked) })
	}
	working.Wait()
	close(worked)
	s.setLimit(fixedLimit)
	s.letAllGo()
	s.late.Wait()
	impatience.Stop()
	time.Sleep(2 * sessionTimeout)
	stop()
	electing.Wait()
	time.Sleep(3 * sessionTimeout)
	check()
	s.finish()
	return s.tally()
}

func (s *simulation) tally() tally {
	all := tally{Requests: s.srv.Requests().Total(), Holds: s.checker.begun, Hits: hits{}}
	s.harms.count(&all)
	return all
}

func (s *simulation) errorf(format string, args ...any) { s.checker.errorf(format, args...) }

// running adds a call to those that are running, until end is called.
func (s *simulation) running(call string) (end func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls[call] += n; s.calls[call] == 0 {
			delete(s.calls, call)
		}
	}
	add(1)
	return func() { add(-1) }
}

func (s *simulation) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for call, n := range s.calls {
		all = append(all, fmt.Sprintf("%d x %s", n, call))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// prepare creates the nodes that exist before the first client connects, and the clients.
func (s *simulation) prepare() {
	require.NoError(s.t, s.srv.Create(limitPath, number(fixedLimit)))
	s.setLimit(fixedLimit)
	for _, p := range append(slices.Clone(multiPaths), rwPath, singlePath) {
		require.NoError(s.t, s.srv.Create(dataPath+p, nil))
	}
	for _, dir := range s.directories() {
		if s.foreign && s.random.IntN(2) == 0 {
			s.fill(dir)
		}
		if s.ending {
			require.NoError(s.t, s.srv.Create(dir+"/keep", nil))
			require.NoError(s.t, s.srv.SetSequence(dir, int32(1<<31-1-s.random.IntN(12))))
		}
	}
	if s.has("discovery") {
		require.NoError(s.t, s.fillServices())
	}
	s.counts.n, s.parties.n = 2+s.random.IntN(5), 2+s.random.IntN(2)
	servers := []string{s.srv.MemAddr()}
	for range s.plan.followers {
		f := s.srv.Follower(upTo(s.random, s.lag))
		s.followers, servers = append(s.followers, f), append(servers, f.MemAddr())
	}
	if s.plan.followers > 0 && s.random.IntN(2) == 0 {
		s.srv.Leader().SetLag(upTo(s.random, s.lag/4))
	}
	s.harms.forget()
	s.calm = &member{simulation: s, name: "calm", servers: s.srv.MemAddr(), random: fork(s.random)}
	s.calm.open()
	for i := range s.plan.members {
		m := &member{simulation: s, name: fmt.Sprint("c", i), random: fork(s.random)}
		m.servers = strings.Join(servers, ",")
		if s.random.IntN(4) == 0 {
			m.servers = servers[s.random.IntN(len(servers))]
		}
		m.open()
		s.members = append(s.members, m)
	}
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

// candidates runs and observes elections until ctx ends. check checks the last reports of the
// observers.
func (s *simulation) candidates(ctx context.Context, electing *sync.WaitGroup) (check func()) {
	paths := map[string]string{"election": electionPath, "latch": latchPath}
	observers := map[string]*observer{}
	observing, stop := context.WithCancel(context.Background())
	for _, r := range s.recipes {
		if p, ok := paths[r.name]; ok {
			observers[p] = observe(observing, s.calm.current().client, p)
		}
	}
	for _, m := range s.members {
		if s.has("election") {
			for i := range 2 {
				w := m.worker(fmt.Sprint("e", i))
				electing.Go(func() { w.elect(ctx) })
			}
		}
		if s.has("latch") {
			w := m.worker("l")
			electing.Go(func() { w.latch(ctx) })
		}
	}
	return func() {
		for p, o := range observers {
			if node := o.node.Load(); node == nil || *node != "" {
				s.errorf("the last leader reported for %s is %v", p, node)
			}
		}
		stop()
	}
}

// letAllGo does what the calls that may last wait for.
func (s *simulation) letAllGo() {
	time.Sleep(2 * s.lag) // until all servers know all counts, and calls that begin now are counted
	s.gate.open(s)
	s.counts.open(s)
}

// finish checks the state of all recipes, that every lock can be acquired, and that nothing is left.
func (s *simulation) finish() {
	s.kept.check(s)
	if s.has("discovery") {
		s.services.check(s)
	}
	s.sum.check(s)
	s.value.check(s)
	s.numbers.check(s)
	for _, m := range append(s.members, s.calm) {
		if l := m.current(); l.tree != nil {
			l.tree.check(m)
		}
		m.acquireAll()
		m.close()
	}
	s.checker.finish()
	_ = s.srv.Delete(treePath)
	for _, dir := range s.directories() {
		if data, err := s.srv.Get(dir); s.foreign && err == nil && len(data) > 4 { // a fixed limit has 4 bytes
			require.Equal(s.t, "data of "+dir, string(data))
		}
	}
	for _, session := range s.srv.Sessions() {
		s.errorf("%v is left, with %v", session, session.Ephemerals)
	}
	require.Empty(s.t, s.metrics.Levels())
}

// close closes the client, which has a connection again. A client that is closed while it connects may
// leave a session.
func (m *member) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l := m.current()
	if err := l.client.WaitConnected(ctx); err != nil {
		m.errorf("%s does not connect in the end: %v", m.name, err)
	}
	l.close()
}

// acquireAll acquires each lock that took part.
func (m *member) acquireAll() {
	l := m.current()
	for _, r := range m.recipes {
		if r.lock == nil {
			continue
		}
		one := r.lock(l)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		h, err := one.Acquire(ctx)
		cancel()
		if err != nil {
			m.errorf("%s: %s cannot be acquired in the end: %v", m.name, r.name, err)
			continue
		}
		_ = h.Release()
		if one == lock(l.handoff) {
			time.Sleep(2 * sessionTimeout) // its node is kept until then
		}
	}
}

// passing reports whether err says that a parent was deleted repeatedly while it was being created.
func passing(err error) bool { return errors.Is(err, zk.ErrNoNode) }
