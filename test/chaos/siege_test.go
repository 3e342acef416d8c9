package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

const (
	// siegeVariable says how long the siege lasts; half a minute if it is not set, and less in short mode.
	siegeVariable = "DOCENT_SIEGE"
	// seedVariable repeats the choice of faults of a siege, though not what comes of them.
	seedVariable = "DOCENT_SIEGE_SEED"
)

// siegeOfOne is how long one ensemble is used at most. The next one has other settings.
const siegeOfOne = 10 * time.Minute

// The longest session timeout of workers, and the bound on all that must happen when the faults are
// over. Nodes of sessions that have ended are gone after one timeout, counted anew by a new leader;
// the rest is for a busy machine.
const (
	siegeTimeout  = 12 * time.Second
	recoveryBound = 2*siegeTimeout + 2*testzk.Patience
)

// siegePause is the longest pause of a writer of a siege between two changes.
const siegePause = 300 * time.Millisecond

func siegeLength(t *testing.T) time.Duration {
	t.Helper()
	if value := os.Getenv(siegeVariable); value != "" {
		d, err := time.ParseDuration(value)
		require.NoError(t, err, siegeVariable)
		return d
	}
	if testing.Short() {
		return 10 * time.Second
	}
	return 30 * time.Second
}

func siegeSeed(t *testing.T) uint64 {
	t.Helper()
	if value := os.Getenv(seedVariable); value != "" {
		seed, err := strconv.ParseUint(value, 0, 64)
		require.NoError(t, err, seedVariable)
		return seed
	}
	return rand.Uint64()
}

// Faults come at random, one or several at a time, and are over; then the workers rest, and nothing
// may be left.
func TestSiege(t *testing.T) {
	realzk.Need(t)
	seed := siegeSeed(t)
	end := time.Now().Add(siegeLength(t))
	total := newTotals()
	for n := 0; n == 0 || time.Now().Before(end); n++ {
		until := time.Now().Add(siegeOfOne)
		if until.After(end) {
			until = end
		}
		if !t.Run(strconv.Itoa(n+1), func(t *testing.T) { siegeOne(t, seed+uint64(n), until, total) }) {
			break
		}
	}
	t.Logf("seed %d; %v", seed, total)
}

// totals are the numbers of a siege.
type totals struct {
	mu       sync.Mutex
	rounds   int
	grants   map[string]int // by kind
	lost     int            // of those
	writes   int
	faults   map[string]int // by name
	recovery time.Duration  // the longest
	events   int            // of caches
	versions int            // of nodes that caches have shown
	marks    int            // created or deleted
	told     int            // events of marks
	gaps     int            // that persistent watches told
}

func newTotals() *totals { return &totals{grants: map[string]int{}, faults: map[string]int{}} }

func (s *totals) fault(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name]++
}

func (s *totals) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d rounds; grants: %s, %d of them lost, %d guarded writes; "+
		"caches: %d events, %d versions of nodes; persistent watches: %d events of %d changes, %d gaps; "+
		"faults: %s; longest recovery %v",
		s.rounds, counts(s.grants), s.lost, s.writes, s.events, s.versions, s.told, s.marks, s.gaps,
		counts(s.faults), s.recovery.Round(time.Millisecond))
}

func counts(of map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d %s", of[name], name))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// siege is one ensemble with its workers.
type siege struct {
	t         *testing.T
	random    *rand.Rand
	record    *recorder
	total     *totals
	servers   *network
	ensemble  *ensemble.Ensemble
	workers   []*siegeProcess // that contend for locks
	keepers   []*siegeProcess // that do not, and may be killed
	followers *followers
	writer    *writer
	observer  *zk.Conn
	fresh     *framework.Client
	histories map[string]*lockHistory
	faults    sync.WaitGroup // those that go on
}

func siegeOne(t *testing.T, seed uint64, until time.Time, total *totals) {
	s := &siege{
		t:         t,
		random:    rand.New(rand.NewPCG(seed, 0)),
		record:    newRecorder(t),
		total:     total,
		servers:   newNetwork(t),
		histories: map[string]*lockHistory{},
	}
	syncLimit := []int{4, 10, 20}[s.random.IntN(3)]
	s.ensemble = ensemble.Start(t, 3,
		ensemble.WithConfig("syncLimit", strconv.Itoa(syncLimit)),
		ensemble.WithQuorumLink(s.servers.between),
		ensemble.WithServerConfig(1, "maxSessionTimeout", "6000"),
		ensemble.WithServerConfig(2, "maxSessionTimeout", "9000"))
	t.Cleanup(s.keepLogs)
	s.note("seed %d, syncLimit %d", seed, syncLimit)
	s.observer = observe(t, s.ensemble.Connect())
	s.fresh = testzk.Connected(t, s.ensemble.Connect())
	for _, lock := range siegeLocks {
		s.histories[lock] = newLockHistory()
		_, err := s.fresh.Create(testzk.Context(t), written(lock), nil)
		require.NoError(t, err)
	}
	s.followers = newFollowers(t, s.record, s.observer)
	s.writer = &writer{
		client: s.fresh, name: "observer", pause: siegePause,
		wrong: func(err error) { t.Errorf("an error that no fault explains: %v", err) },
	}
	for n := range 4 {
		s.workers = append(s.workers, s.start(n))
	}
	for n := range 2 {
		w := newSiegeProcess(s.servers, s.ensemble, len(s.workers)+n)
		s.keepers = append(s.keepers, w)
		s.startKeeper(w)
	}
	for n := 0; n == 0 || time.Now().Before(until); n++ {
		s.round(n)
	}
	var all []*process
	for _, w := range s.all() {
		all = append(all, w.process)
	}
	finish(t, all...)
	s.count()
}

// observe returns a connection of the driver that does not log the faults that it meets.
func observe(t *testing.T, connect string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(connect, ","), 20*time.Second, zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// keepLogs puts the servers' logs beside the history of a siege that has failed.
func (s *siege) keepLogs() {
	if !s.t.Failed() {
		return
	}
	file, err := os.Create(filepath.Join(s.record.dir, "servers.log"))
	if err != nil {
		return
	}
	defer file.Close()
	s.ensemble.Logs(file, 100_000)
}

func (s *siege) note(format string, args ...any) {
	s.record.note(format, args...)
	if testing.Verbose() {
		s.t.Logf(format, args...)
	}
}

// start starts a worker. Every second one makes its heartbeats transactions, and to one the servers
// seem to be older.
func (s *siege) start(n int) *siegeProcess {
	w := newSiegeProcess(s.servers, s.ensemble, n)
	w.start(s.t, s.record, "siege", settings{Timeout: siegeTimeout, Quorum: n%2 == 1, Older: n == 2})
	s.followers.add(w)
	return w
}

// startKeeper starts a worker that keeps nodes and contends for nothing, or starts it again.
func (s *siege) startKeeper(w *siegeProcess) {
	w.start(s.t, s.record, "follow", settings{
		Timeout: siegeTimeout, Quorum: w.number%2 == 1, Older: w.number%2 == 0, Data: fmt.Sprintf("data %d", now()),
	})
	s.followers.add(w)
}

// round makes faults, and checks everything after them.
func (s *siege) round(n int) {
	for _, w := range s.workers {
		require.NoError(s.t, w.order(orderGo))
	}
	stop := s.change()
	for range 1 + s.random.IntN(3) {
		s.begin()
	}
	s.faults.Wait()
	s.repair()
	stop()
	repaired := time.Now()
	order := []string{orderDrain, orderCancel}[s.random.IntN(2)]
	s.note("round %d: the faults are over: %s", n+1, order)
	for _, w := range s.workers {
		require.NoError(s.t, w.order(order))
	}
	turns := s.rest()
	s.record.keep(turns...)
	s.check(turns)
	s.empty()
	s.acquireAll()
	s.watch()
	s.follow()
	took := time.Since(repaired)
	s.note("round %d: all is well after %v", n+1, took.Round(time.Millisecond))

	s.total.mu.Lock()
	defer s.total.mu.Unlock()
	s.total.rounds++
	s.total.recovery = max(s.total.recovery, took)
}

// begin begins one fault, which goes on by itself until it is over.
func (s *siege) begin() {
	f := faults[s.random.IntN(len(faults))]
	a := &activeFault{siege: s, random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), name: f.name}
	s.faults.Go(func() {
		a.wait(0, 2*time.Second)
		s.record.note("begin %s", a.name)
		f.run(a)
		s.record.note("end %s", a.name)
	})
}

// all returns all workers.
func (s *siege) all() []*siegeProcess { return slices.Concat(s.workers, s.keepers) }

// change changes the subtree and makes marks until stop is called.
func (s *siege) change() (stop func()) {
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.writer.run(context.Background(), over) })
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(rand.N(200 * time.Millisecond)): // the workload
				s.followers.marks.make(s.observer, siegeLines[n%len(siegeLines)])
			}
		}
	})
	for _, w := range s.keepers {
		random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(random.Int64N(int64(4 * time.Second)))): // the workload
					w.set(fmt.Sprintf("data %d", now()))
				}
			}
		})
	}
	return func() {
		close(over)
		running.Wait()
		s.followers.writes.add(s.writer.take()...)
	}
}

// watch waits until each persistent watch has told of marks that are made while nothing else changes.
// After a reconnect in between, which is told as a gap, other marks are made.
func (s *siege) watch() {
	s.t.Helper()
	missing := ""
	eventually(s.t, func() bool {
		for _, dir := range siegeLines {
			if s.fresh.CreateContainers(testzk.Context(s.t), dir) != nil {
				return false
			}
		}
		s.ask()
		s.followers.countLists()
		gaps := s.followers.gaps
		if !s.followers.marks.makeAll(s.observer, siegeLines) {
			missing = "marks cannot be made"
			return false
		}
		eventually(s.t, func() bool {
			s.ask()
			missing = s.followers.missing()
			return missing == "" || s.followers.gaps > gaps
		}, func() string { return "changes were not told: " + missing })
		return missing == ""
	}, func() string { return "changes are not told: " + missing })
}

func (s *siege) ask() {
	s.t.Helper()
	if err := s.followers.ask(); err != nil {
		s.t.Fatal(err)
	}
}

// follow waits until what all workers follow and keep is equal to what the servers have.
func (s *siege) follow() {
	s.t.Helper()
	diff := ""
	eventually(s.t, func() bool {
		s.ask()
		diff = s.followers.differences()
		return diff == ""
	}, func() string {
		s.followers.keepLatest()
		return "what is followed or kept is not as on the servers:\n" + diff
	})
	require.NoError(s.t, s.followers.prove())
}

// count adds the numbers of the ensemble to the totals.
func (s *siege) count() {
	s.total.mu.Lock()
	defer s.total.mu.Unlock()
	s.total.events += s.followers.events
	s.total.versions += len(s.followers.writes.seen)
	s.total.marks += len(s.followers.marks.events)
	s.total.told += s.followers.told
	s.total.gaps += s.followers.gaps
}

// repair ends what is left of the faults.
func (s *siege) repair() {
	for _, w := range s.all() {
		w.cont()
		for _, relay := range w.relays {
			relay.release()
			relay.allow()
		}
	}
	for _, from := range s.ensemble.Servers() {
		for _, to := range s.ensemble.Servers() {
			if from != to {
				s.servers.link(from, to).release()
			}
		}
		if !from.Running() {
			require.NoError(s.t, from.Start(testzk.Context(s.t)))
		}
		require.NoError(s.t, from.Resume())
	}
	if err := s.waitReady(); err != nil {
		s.note("all servers are restarted: %v", err)
		s.restartServers()
		require.NoError(s.t, s.waitReady())
	}
}

func (s *siege) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), recoveryBound)
	defer cancel()
	return s.ensemble.WaitReady(ctx)
}

// restartServers ends an election that does not end by itself. After several faults a follower may
// name another leader than the one that it follows. A third server then finds no majority for any
// leader, while the two serve.
func (s *siege) restartServers() {
	for _, server := range s.ensemble.Servers() {
		require.NoError(s.t, server.Kill())
	}
	for _, server := range s.ensemble.Servers() {
		require.NoError(s.t, server.Start(testzk.Context(s.t)))
	}
}

// rest waits until all workers rest, and returns what they have said since they rested last.
func (s *siege) rest() (turns []turn) {
	s.t.Helper()
	for _, w := range s.workers {
		eventually(s.t, func() bool {
			said := w.said()
			return len(said) > 0 && said[len(said)-1].Kind == kindResting
		}, func() string { return fmt.Sprintf("worker %d does not come to rest; %s", w.number, s.left()) })
		turns = append(turns, w.take()...)
	}
	return turns
}

// check checks the turns of a round, and counts them.
func (s *siege) check(turns []turn) {
	s.t.Helper()
	byLock := map[string][]turn{}
	s.total.mu.Lock()
	for _, t := range turns {
		switch t.Kind {
		case kindError:
			s.t.Errorf("an error that no fault explains: %+v", t)
		case kindResting:
			if t.Lost != "" {
				s.t.Errorf("a worker has no session after the faults: %+v", t)
			}
		default:
			byLock[t.Lock] = append(byLock[t.Lock], t)
			s.total.grants[t.Kind]++
			if t.Lost != "" {
				s.total.lost++
			}
			if t.Wrote != 0 {
				s.total.writes++
			}
		}
	}
	s.total.mu.Unlock()
	for lock, turns := range byLock {
		if err := s.histories[lock].add(turns); err != nil {
			s.t.Errorf("%s: %v", lock, err)
		}
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// empty waits until no queue has a node. The workers have no hold and do not acquire, and their
// sessions are alive.
func (s *siege) empty() {
	s.t.Helper()
	eventually(s.t, func() bool {
		for _, line := range siegeLines {
			s.followers.marks.clean(s.observer, line)
		}
		return s.left() == "nothing is left"
	}, func() string {
		return "nodes are left that nothing owns: " + s.left()
	})
}

// left returns the nodes in the queues, as text.
func (s *siege) left() string {
	var nodes []string
	if err := testzk.Sync(s.observer); err != nil {
		return err.Error()
	}
	for _, line := range siegeLines {
		names, _, err := s.observer.Children(line)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err.Error()
		}
		for _, name := range names {
			node := line + "/" + name
			if _, stat, err := s.observer.Exists(node); err == nil && stat != nil {
				node += fmt.Sprintf(" of session %#x, created by transaction %#x at %s", stat.EphemeralOwner,
					stat.Czxid, time.UnixMilli(stat.Ctime).UTC().Format("15:04:05.000"))
			}
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return "nothing is left"
	}
	return strings.Join(nodes, ", ")
}

// acquireAll takes each lock once, by a client that no fault concerns while it does.
func (s *siege) acquireAll() {
	s.t.Helper()
	all, err := acquirers(s.fresh)
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), recoveryBound)
	defer cancel()
	for _, a := range all {
		eventually(s.t, func() bool {
			hold, err := a.acquire(ctx)
			if err != nil {
				s.record.note("%s %s: %v", a.kind, a.lock, err)
				return false
			}
			return hold.Release() == nil
		}, func() string { return "nothing gets " + a.lock + " any more: " + s.left() })
	}
}
