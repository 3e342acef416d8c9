package chaos

import (
	"errors"
	"fmt"
	"io"
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
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest/ensemble"
)

const (
	// siegeVariable says how long the siege lasts; half a minute if it is not set, and less in short mode.
	siegeVariable = "DOCENT_SIEGE"
	// seedVariable repeats the choice of servers, settings, faults and moments, and what each goroutine of a
	// worker chooses. It does not repeat what comes of it: the order in which processes run is another one.
	seedVariable = "DOCENT_SIEGE_SEED"
	// verdictVariable names a file that gets the line with the verdict.
	verdictVariable = "DOCENT_SIEGE_VERDICT"
)

// How long one ensemble is used. A siege of more than a few minutes has several, and each has other
// settings.
const (
	longestEnsemble  = 10 * time.Minute
	shortestEnsemble = 2 * time.Minute
	ensembles        = 6 // that a siege has, if each is used for a time between these
	moreEnsembles    = 5 // at most, if all of these have lost transactions
)

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
	seed, length, total := siegeSeed(t), siegeLength(t), newTotals()
	t.Logf("a siege of %v with seed %d", length, seed)
	t.Cleanup(func() { tellVerdict(t, total.verdict(seed, t.Failed())) })
	each := min(max(length/ensembles, shortestEnsemble), longestEnsemble)
	siegeAll(length, each, total, func(n int, until time.Time) bool {
		return t.Run(strconv.Itoa(n+1), func(t *testing.T) { siegeOne(t, seed+uint64(n), 3+n%2*2, until, total) })
	})
	if !t.Failed() {
		require.NoError(t, total.isEmpty())
	}
}

// siegeAll uses ensembles one after another, until the siege is over or one of them fails. If all of them have lost
// transactions by then, which shows nothing of docent, it uses some more.
func siegeAll(length, each time.Duration, total *totals, one func(n int, until time.Time) bool) {
	end := time.Now().Add(length)
	for n, more := 0, 0; ; n++ {
		left := time.Until(end)
		if left <= 0 {
			if more == moreEnsembles || !total.allLost() {
				return
			}
			more, left = more+1, length
		}
		if !one(n, time.Now().Add(min(each, left))) {
			return
		}
	}
}

// tellVerdict prints the verdict, and writes it to a file for what prints it last.
func tellVerdict(t *testing.T, verdict string) {
	t.Log(verdict)
	if file := os.Getenv(verdictVariable); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(verdict+"\n"), 0o600))
	}
}

// siege is one ensemble with its workers.
type siege struct {
	t         *testing.T
	random    *rand.Rand
	record    *recorder
	total     *totals
	deck      []int // the faults that have not come yet, by their places
	servers   *network
	ensemble  *ensemble.Ensemble
	logs      func(w io.Writer, lines int) // of the ensemble
	disks     *disks                       // nil: the servers do not wait for their disks
	targets   map[int]*target              // by the number of the server
	workers   []*siegeProcess              // that contend for locks
	keepers   []*siegeProcess              // that do not
	followers *followers
	writer    *writer
	limit     *movingLimit
	observer  *zk.Conn
	ledgers   ledgers
	fresh     *framework.Client
	acquirers []acquirer // of fresh
	histories map[string]*lockHistory

	// Of one round.
	counterPath string
	counter     *counterHistory
	turns       map[string][]turn // by lock
	granted     *grants
	wrong       error         // what the monitor has found
	cancelled   chan struct{} // closed when faults are to end
	endFaults   func()
	restored    sync.Once // one server in a round loses data
}

func siegeOne(t *testing.T, seed uint64, servers int, until time.Time, total *totals) {
	s := &siege{
		t:         t,
		random:    randomOf(seed),
		record:    newRecorder(t),
		total:     total,
		servers:   newNetwork(t),
		targets:   map[int]*target{},
		histories: map[string]*lockHistory{},
	}
	total.set(func() { total.ensembles[fmt.Sprintf("of %d", servers)]++ })
	s.startServers(seed, servers)
	s.observer = observe(t, s.ensemble.Connect())
	s.ledgers = newLedgers(t, strings.Split(s.ensemble.Connect(), ",")...)
	s.fresh = testzk.Connected(t, s.ensemble.Connect())
	var err error
	s.acquirers, err = acquirers(s.fresh)
	require.NoError(t, err)
	for _, lock := range siegeLocks {
		s.histories[lock] = newLockHistory()
		s.create(tokenPath(lock), nil)
	}
	s.histories[siegeMoving].permits.Zxid = s.create(siegeLimit, encodeLimit(permits))
	s.limit = &movingLimit{client: s.fresh}
	s.followers = newFollowers(t, s.record, s.observer)
	s.writer = &writer{client: s.fresh, name: "observer", pause: siegePause, random: another(s.random)}
	s.writer.wrong = s.writer.keepWrong
	for n := range 4 {
		w := newSiegeProcess(s.servers, s.ensemble, n, s.random.Uint64())
		s.workers = append(s.workers, w)
		s.startWorker(w)
	}
	for n := range 2 {
		w := newSiegeProcess(s.servers, s.ensemble, len(s.workers)+n, s.random.Uint64())
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

// startServers starts an ensemble with settings that depend on the seed.
func (s *siege) startServers(seed uint64, servers int) {
	syncLimit := []int{4, 10, 20}[s.random.IntN(3)]
	snapCount := []int{200, 2000, 100_000}[s.random.IntN(3)]
	timeouts := []int{6000, 6000, 9000, 12_000} // the shorter, the more sessions expire
	opts := []ensemble.Option{
		ensemble.WithConfig("syncLimit", strconv.Itoa(syncLimit)),
		ensemble.WithProperty("zookeeper.snapCount", strconv.Itoa(snapCount)),
		ensemble.WithProperty("zookeeper.preAllocSize", "1024"), // KB, so that a copy of the data is small
		ensemble.WithQuorumLink(s.servers.between), ensemble.WithElectionLink(s.servers.betweenElections),
	}
	for id := 1; id <= servers; id++ {
		s.targets[id] = &target{}
		longest := timeouts[s.random.IntN(4)]
		opts = append(opts, ensemble.WithServerConfig(id, "maxSessionTimeout", strconv.Itoa(longest)))
	}
	waits := s.random.IntN(3) > 0
	if waits {
		s.disks = newDisks(s.t)
	}
	if s.disks != nil {
		opts = append(opts, s.disks.options(servers)...)
	}
	s.note("seed %d: %d servers, syncLimit %d, snapCount %d, they wait for their disks: %t",
		seed, servers, syncLimit, snapCount, waits)
	s.ensemble = ensemble.Start(s.t, servers, opts...)
	s.logs = s.ensemble.Logs
	s.t.Cleanup(s.keepLogs)
}

// What a siege finds wrong shows nothing of docent if a server has found that its nodes are not those of the
// leader.
func TestSiegeGivesUpServersWithDifferentNodes(t *testing.T) {
	total := newTotals()
	for name, look := range map[string]func(s *siege){
		"a token":                              func(s *siege) { s.require(errors.New("a token was given twice")) },
		"a node of a cache that was not there": (*siege).ask,
	} {
		gaveUp := t.Run(name, func(t *testing.T) {
			s := &siege{t: t, record: newRecorder(t), total: total, logs: func(w io.Writer, _ int) {
				_, _ = io.WriteString(w, "ERROR DataTree - First digest mismatch on txn: 144119257061588992,569\n")
			}}
			s.followers = newFollowers(t, s.record, nil)
			s.require(nil)
			s.ask()
			reader, stdin, err := os.Pipe()
			require.NoError(t, err)
			defer reader.Close()
			defer stdin.Close()
			s.followers.add(&siegeProcess{process: &process{stdin: stdin}, turns: []turn{
				{Kind: kindCache, Lock: scopes[0].name, Report: &Report{Cache: &cacheReport{
					Changes: []change{{Kind: cache.Removed, Path: scopes[0].root, Old: &version{}}},
				}}},
				{Kind: kindShown, Report: &Report{Group: &groupReport{}}},
			}})
			look(s)
			t.Error("the siege goes on")
		})
		require.True(t, gaveUp)
	}
	require.Equal(t, 2, total.givenUp)
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
	s.total.set(func() { s.total.history = s.record.file.Name() })
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

// startWorker starts a worker that contends for locks, or starts it again. Every second one makes its
// heartbeats transactions, and to one the servers seem to be older.
func (s *siege) startWorker(w *siegeProcess) {
	n := w.number
	w.start(s.t, s.record, "siege", settings{Timeout: siegeTimeout, Quorum: n%2 == 1, Older: n == 2})
	s.followers.add(w)
}

// startKeeper starts a worker that keeps nodes and contends for nothing, or starts it again.
func (s *siege) startKeeper(w *siegeProcess) {
	w.start(s.t, s.record, "follow", settings{
		Timeout: siegeTimeout, Quorum: w.number%2 == 1, Older: w.number%2 == 0, Data: fmt.Sprintf("data %d", now()),
	})
	s.followers.add(w)
}

// all returns all workers.
func (s *siege) all() []*siegeProcess { return slices.Concat(s.workers, s.keepers) }

// count adds the numbers of the ensemble to the totals.
func (s *siege) count() {
	s.total.set(func() {
		s.total.events += s.followers.events
		s.total.versions += len(s.followers.writes.seen)
		s.total.marks += len(s.followers.marks.events)
		s.total.told += s.followers.told
		s.total.gaps += s.followers.gaps
	})
}
