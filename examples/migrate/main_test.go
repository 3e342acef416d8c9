package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patience is how long tests wait for what has to come. It only matters when a test fails.
const patience = time.Minute

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// servers are those of one test.
type servers struct {
	zookeeper *zktest.Server
	redis     *miniredis.Miniredis
}

func newServers(t testing.TB) servers { return servers{zktest.Start(t), miniredis.RunT(t)} }

func (s servers) services() services {
	return services{zookeeper: s.zookeeper.Addr(), redis: s.redis.Addr()}
}

// requireFree waits until no lock is held and none is waited for: an acquire that fails cleans up in the
// background. The keys do not expire here.
func (s servers) requireFree(t testing.TB) {
	t.Helper()
	free := func() bool { return !s.redis.Exists(key) && !strings.Contains(s.zookeeper.Tree(), "ephemeral") }
	testzk.Eventually(t, free, "a lock is held, or a node is left")
}

// clientsOf returns clients with a short time to live, which end with the test.
func clientsOf(t testing.TB, s servers, r release) clients {
	t.Helper()
	c, err := s.services().open(r, redislock.WithTTL(ttl))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close()) })
	return c
}

const ttl = 10 * time.Second

func lockOfRelease(t testing.TB, s servers, r release) recipes.Locker {
	t.Helper()
	c := clientsOf(t, s, r)
	lock, err := newLock(r, c.zk, c.locks)
	require.NoError(t, err)
	return lock
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(bounded(t))
	require.NoError(t, err)
	return hold
}

func TestExample(t *testing.T) {
	s := newServers(t)
	var out bytes.Buffer
	require.NoError(t, run(bounded(t), s.services(), &out))
	exampletest.Lines(t, out.String(),
		`all programs hold the lock on Redis; .* of Redis and 0x0 of ZooKeeper\n`,
		`program 2: holds both locks instead of the lock on Redis\n`,
		`a late write of a program that held Redis only is refused: fence: stale token: `,
		`the resource requires a token of ZooKeeper\n`,
		`a write without a token of ZooKeeper is refused: `,
		`program 2: holds the lock on ZooKeeper instead of both locks\n`,
		`and back\n`,
		`program 2: holds both locks instead of the lock on ZooKeeper\n`,
		`program 2: holds the lock on Redis instead of both locks\n`,
		`\d+ writes by 15 programs: no two at once, and the tokens of each service have only grown\n$`)
	s.requireFree(t)
}

func TestInterruptedExampleLeavesNothing(t *testing.T) {
	for _, moment := range []string{"program 1: holds both", "program 1: holds the lock on ZooKeeper"} {
		s := newServers(t)
		exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
			return run(ctx, s.services(), out)
		})
		s.requireFree(t)
	}
}

// A program that holds the new lock only starts beside those that hold the old one.
func TestSkippedStepIsNoticed(t *testing.T) {
	s, r := newServers(t), &resource{}
	f := newFleet(s.services(), r, program.NewReporter(io.Discard))
	r.require(ofRedis)
	require.NoError(t, f.replaceAll(bounded(t), holdsOld))
	require.Error(t, f.replaceAll(bounded(t), holdsNew))
	require.Error(t, f.stop())
	s.requireFree(t)
}

// page returns the text of the page between two marks.
func page(t testing.TB, from, to string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/migration.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), from)
	require.True(t, found, "%s is missing", from)
	part, _, found := strings.Cut(rest, to)
	require.True(t, found, "%s is missing", to)
	return part
}

// rows returns the cells of a table, without its heading.
func rows(table string) (all [][]string) {
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all[2:]
}

const end = "<!-- end of table -->"

// Each lock of the page's table is held while each is tried, and the tables say what happens.
func TestPageSaysWhichReleasesExcludeEachOther(t *testing.T) {
	s := newServers(t)
	waits := map[string]map[string]bool{}
	var measured []string
	for _, holds := range kinds {
		waits[holds] = map[string]bool{}
		row := []string{holds}
		for _, tries := range kinds {
			waits[holds][tries] = excludes(t, s, lockOf(t, s, holds), lockOf(t, s, tries))
			row = append(row, map[bool]string{true: "waits", false: "**gets in**"}[waits[holds][tries]])
		}
		measured = append(measured, "| "+strings.Join(row, " | ")+" |")
	}
	table := rows(page(t, "<!-- table: releases beside each other -->\n", end))
	var shown []string
	for _, cells := range table {
		shown = append(shown, "| "+strings.Join(cells, " | ")+" |")
	}
	require.Equal(t, measured, shown)

	steps := rows(page(t, "<!-- table: steps of a migration -->\n", end))
	require.Len(t, steps, 5)
	for _, step := range steps {
		running := strings.Split(step[1], " and ")
		for _, a := range running {
			for _, b := range running {
				require.True(t, waits[a][b], "step %s: %s does not wait for %s", step[0], b, a)
			}
		}
	}
}

// excludes reports whether a lock cannot be acquired while another one is held. If it can wait, it
// acquires the lock when the other one is released. Neither leaves anything.
func excludes(t *testing.T, s servers, holder, trier recipes.Locker) bool {
	t.Helper()
	held, err := holder.TryAcquire(bounded(t))
	require.NoError(t, err)
	hold, err := trier.TryAcquire(bounded(t))
	if err == nil {
		require.NoError(t, hold.Release())
		require.NoError(t, held.Release())
		s.requireFree(t)
		return false
	}
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	if _, triesOnly := trier.(peer); triesOnly {
		trier = polling{trier}
	}
	next := testlock.Start(t, trier.Acquire)
	require.True(t, next.Waiting())
	require.NoError(t, held.Err())
	require.NoError(t, held.Release())
	require.NoError(t, next.Won(t).Release())
	s.requireFree(t)
	return true
}

// polling waits for a lock that only tries.
type polling struct{ recipes.Locker }

func (p polling) Acquire(ctx context.Context) (*recipes.Hold, error) {
	for {
		hold, err := p.TryAcquire(ctx)
		if err == nil || ctx.Err() != nil {
			return hold, err
		}
		pause(ctx, time.Millisecond)
	}
}

// In the first step, what waits has no node on ZooKeeper: the new lock is free for each that has the
// old one.
func TestOldLockIsAcquiredFirst(t *testing.T) {
	s := newServers(t)
	held := acquire(t, lockOfRelease(t, s, holdsOld))
	next := testlock.Start(t, lockOfRelease(t, s, holdsBoth).Acquire)
	channel := "{" + key + "}:released"
	testzk.Eventually(t, func() bool { return s.redis.PubSubNumSub(channel)[channel] == 1 }, "it does not wait")
	require.NotContains(t, s.zookeeper.Tree(), "ephemeral")
	require.NoError(t, held.Release())
	require.NoError(t, next.Won(t).Release())
	s.requireFree(t)
}

// A program acquires the new lock first, and another one the old lock first. Each holds one lock and
// waits for the other one, until one of them gives up.
func TestProgramsWithAnotherOrderWaitForEachOther(t *testing.T) {
	s := newServers(t)
	arrived, meet := make(chan struct{}, 2), make(chan struct{})
	var attempts []*testlock.Attempt
	for _, order := range [][]release{{holdsOld, holdsNew}, {holdsNew, holdsOld}} {
		first := meeting{lockOfRelease(t, s, order[0]), arrived, meet}
		m, err := multilock.Combine(first, lockOfRelease(t, s, order[1]))
		require.NoError(t, err)
		attempts = append(attempts, testlock.Start(t, m.Acquire))
	}
	for range attempts {
		select {
		case <-arrived:
		case <-bounded(t).Done():
			require.FailNow(t, "the first lock of a program is not free")
		}
	}
	close(meet)
	for _, a := range attempts {
		require.True(t, a.Waiting())
	}
	attempts[0].GivesUp(t)
	require.NoError(t, attempts[1].Won(t).Release())
	s.requireFree(t)
}

// meeting is a lock whose Acquire waits, when it has the lock, until meet is closed.
type meeting struct {
	recipes.Locker
	arrived chan<- struct{}
	meet    <-chan struct{}
}

func (m meeting) Acquire(ctx context.Context) (*recipes.Hold, error) {
	hold, err := m.Locker.Acquire(ctx)
	if err == nil {
		m.arrived <- struct{}{}
		select {
		case <-m.meet:
		case <-ctx.Done():
		}
	}
	return hold, err
}

// The loss of one lock ends the hold of both, and releases the other one.
func TestLossOfOneLockEndsBoth(t *testing.T) {
	for name, row := range map[string]struct {
		lose  func(t *testing.T, s servers, h *recipes.Hold)
		cause error
	}{
		"of the old": {
			func(_ *testing.T, s servers, _ *recipes.Hold) { s.redis.Del(key) }, recipes.ErrForeignLost},
		"of the new": {
			func(t *testing.T, s servers, h *recipes.Hold) { require.NoError(t, s.zookeeper.Delete(h.Path())) },
			recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServers(t)
			hold := acquire(t, lockOfRelease(t, s, holdsBoth))
			require.False(t, hold.ValidUntil().After(time.Now().Add(ttl)), "the sooner deadline")
			work := hold.Context(t.Context())
			row.lose(t, s, hold)
			<-work.Done()
			require.ErrorIs(t, context.Cause(work), row.cause)
			for _, r := range []release{holdsOld, holdsBoth, holdsNew} { // free for all
				require.NoError(t, acquire(t, lockOfRelease(t, s, r)).Release())
			}
			require.ErrorIs(t, hold.Release(), row.cause)
		})
	}
}

// What the resource requires in each step, and the releases that run.
var steps = []struct {
	required service
	running  []release
}{
	{ofRedis, []release{holdsOld, holdsBoth}},
	{ofZooKeeper, []release{holdsBoth, holdsNew}},
}

// A holder writes late, after the next holder, in each step and with each pair of releases.
func TestLateWritesAreRefused(t *testing.T) {
	s := newServers(t)
	for _, step := range steps {
		for _, earlier := range step.running {
			for _, later := range step.running {
				r := &resource{}
				r.require(step.required)
				late := take(t, s, earlier)
				require.NoError(t, r.write(take(t, s, later)))
				require.ErrorIs(t, r.write(late), fence.ErrStale, "%v, then %v", earlier, later)
			}
		}
	}
}

// A write of a program of the first step arrives when all programs hold the new lock only, and no
// program that held both has written.
func TestWriteOfAFormerStepIsRefused(t *testing.T) {
	s, r := newServers(t), &resource{}
	r.require(ofRedis)
	late := take(t, s, holdsOld)
	r.require(ofZooKeeper)
	require.NoError(t, r.write(take(t, s, holdsNew)))
	require.ErrorIs(t, r.write(late), errMissing)
}

// The same, if one program has raised the marks to the tokens of a hold of both.
func TestRaisedMarksRefuseAFormerStep(t *testing.T) {
	s, r := newServers(t), &resource{}
	late := take(t, s, holdsOld)
	raised := take(t, s, holdsBoth)
	require.NoError(t, r.redisMark.Accept(raised.redis))
	require.NoError(t, r.zookeeperMark.Accept(raised.zookeeper))
	r.require(ofZooKeeper)
	require.NoError(t, r.write(take(t, s, holdsNew)))
	r.require(ofRedis)
	require.ErrorIs(t, r.write(late), fence.ErrStale)
}

// The tokens of two services cannot be compared with one mark: the next holder in the first step is
// refused.
func TestOneMarkForBothServicesRefusesTheHolder(t *testing.T) {
	s := newServers(t)
	var mark fence.Register
	for range 10 { // ZooKeeper's tokens are ahead
		take(t, s, holdsNew)
	}
	require.NoError(t, mark.Accept(take(t, s, holdsBoth).zookeeper))
	require.ErrorIs(t, mark.Accept(take(t, s, holdsOld).redis), fence.ErrStale)
}

// take returns the tokens of a hold of a release, after its end.
func take(t *testing.T, s servers, r release) tokens {
	t.Helper()
	hold := acquire(t, lockOfRelease(t, s, r))
	require.NoError(t, hold.Release())
	return tokensOf(r, hold)
}

// With one mark, all programs change the token that they send at once: each reads which one it is from
// a node, under both locks.
func TestOneMarkWithASwitchUnderBothLocks(t *testing.T) {
	s := newServers(t)
	for take(t, s, holdsNew).zookeeper < 100 { // ahead of the counter in Redis
		continue
	}
	const node = "/docent-examples/token-of"
	require.NoError(t, s.zookeeper.Create(node, []byte(ofRedis)))
	var mark fence.Register
	var late []int64
	var all []func(between func(*recipes.Hold)) error
	for range 2 {
		c := clientsOf(t, s, holdsBoth)
		lock, err := newLock(holdsBoth, c.zk, c.locks)
		require.NoError(t, err)
		all = append(all, func(between func(*recipes.Hold)) error {
			return recipes.Do(bounded(t), lock, func(ctx context.Context, hold *recipes.Hold) error {
				which, _, err := c.zk.Get(ctx, node)
				if err != nil {
					return err
				}
				between(hold)
				token := tokensOf(holdsBoth, hold).of(service(which))
				late = append(late, token)
				return mark.Accept(token)
			})
		})
	}
	nothing := func(*recipes.Hold) {}
	change := func(*recipes.Hold) { require.NoError(t, s.zookeeper.Set(node, []byte(ofZooKeeper))) }
	back := func(hold *recipes.Hold) {
		require.NoError(t, s.redis.Set("{"+key+"}:token", strconv.FormatInt(hold.Tokens()[1], 10)))
		require.NoError(t, s.zookeeper.Set(node, []byte(ofRedis)))
	}
	steps := []func(*recipes.Hold){nothing, nothing, change, nothing, nothing, back, nothing, nothing}
	for i, between := range steps {
		require.NoError(t, all[i%2](between), "holder %d", i)
	}
	require.Greater(t, mark.Last(), int64(100))
	for _, token := range late[:len(late)-1] {
		require.ErrorIs(t, mark.Accept(token), fence.ErrStale)
	}
}

func TestResourceReportsBrokenLocks(t *testing.T) {
	r := &resource{}
	r.require(ofRedis)
	require.NoError(t, r.begin())
	require.ErrorIs(t, r.use(t.Context(), tokens{redis: 1}), errTogether)
	r.end()
	require.NoError(t, r.use(t.Context(), tokens{redis: 1}))
	require.ErrorIs(t, r.use(t.Context(), tokens{redis: 1}), errTwice)
	require.ErrorIs(t, r.use(t.Context(), tokens{zookeeper: 1}), errMissing)
}
