package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// rounds repeats a fault until it has come about: five times at least, and for five minutes on a busy machine. A round
// says why it has not.
func rounds(t *testing.T, round func(n int) (missed string)) {
	t.Helper()
	for n, end := 0, time.Now().Add(5*time.Minute); n < 5 || time.Now().Before(end); n++ {
		missed := round(n)
		if missed == "" || t.Failed() {
			return
		}
		t.Logf("round %d: the fault did not come about: %s", n+1, missed)
	}
	require.FailNow(t, "the fault did not come about in any round")
}

// roles of servers.
func rolesOf(t *testing.T, e *ensemble.Ensemble) (leader *ensemble.Server, followers []*ensemble.Server) {
	t.Helper()
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	leader, err := e.Leader(testzk.Context(t))
	require.NoError(t, err)
	for _, s := range e.Servers() {
		if s != leader {
			followers = append(followers, s)
		}
	}
	return leader, followers
}

func newMutex(t *testing.T, c *framework.Client, path string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return mu
}

// The creates of acquires wait at server A. The client goes to B, looks for its nodes, and comes back
// to A: then the creates are applied.
func TestLateCreatesLeaveNothingWhenTheClientComesBack(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithConfig("syncLimit", "60"), ensemble.WithQuorumLink(servers.between))
	rounds(t, func(n int) string {
		l := newLate(t, servers, e, n)
		defer l.end()
		l.line()
		l.wait()
		l.visit()
		l.comeBack()
		applied := l.applied()
		l.settle()
		t.Logf("applied late: %d of %d creates of acquires that were given up, %d of %d of those that waited on",
			applied[abandoned], 2*ofEach, applied[waiting], ofEach)
		if applied[abandoned] == 0 || applied[waiting] == 0 {
			return "creates were not applied late"
		}
		return ""
	})
}

// late is one round of creates that are applied late.
type late struct {
	t              *testing.T
	link           *relay // from A to the leader
	relayA, relayB *relay
	client         *framework.Client // of both
	other          *framework.Client // of the leader
	session        *framework.Session
	ctx            context.Context // ends with the round
	over           context.CancelFunc

	locks    map[string]string  // abandoned or waiting, by path
	versions map[string]int32   // how often children were made and deleted, by path
	taken    []*recipes.Hold    // of the other client
	holds    chan *recipes.Hold // theirs
	errors   chan error         // of those that wait on
}

// What becomes of an acquire, and how many there are of each kind: abandoned ones with and without
// another holder, waiting ones with.
const (
	abandoned = "abandoned"
	waiting   = "waiting"
	ofEach    = 6
)

func newLate(t *testing.T, servers *network, e *ensemble.Ensemble, n int) *late {
	leader, followers := rolesOf(t, e)
	l := &late{
		t:        t,
		link:     servers.link(followers[0], leader),
		relayA:   servers.relay(followers[0].Addr()),
		relayB:   servers.relay(followers[1].Addr()),
		locks:    map[string]string{},
		versions: map[string]int32{},
		holds:    make(chan *recipes.Hold, ofEach),
		errors:   make(chan error, ofEach),
	}
	l.ctx, l.over = context.WithCancel(context.Background())
	l.relayB.refuse()
	long := framework.WithSessionTimeout(time.Minute) // neither session must be lost, however busy the machine is
	l.client = testzk.Connected(t, l.relayA.addr()+","+l.relayB.addr(), long)
	l.other = testzk.Connected(t, leader.Addr(), long)
	session, err := l.client.Session(testzk.Context(t))
	require.NoError(t, err)
	l.session = session
	for i := range ofEach {
		l.locks[fmt.Sprintf("/late-%d/idle-%d", n, i)] = abandoned
		l.locks[fmt.Sprintf("/late-%d/taken-%d", n, i)] = abandoned
		l.locks[fmt.Sprintf("/late-%d/awaited-%d", n, i)] = waiting
	}
	return l
}

func (l *late) end() {
	l.over()
	require.NoError(l.t, l.client.Close())
	require.NoError(l.t, l.other.Close())
}

// line has the other client take the locks, but for the idle ones.
func (l *late) line() {
	for path := range l.locks {
		// Not a container, which the servers delete a minute after it has become empty.
		_, err := l.other.Create(testzk.Context(l.t), path, nil, framework.Parents())
		require.NoError(l.t, err)
		hold, err := newMutex(l.t, l.other, path).Acquire(testzk.Context(l.t))
		require.NoError(l.t, err)
		if strings.Contains(path, "idle") {
			require.NoError(l.t, hold.Release())
		} else {
			l.taken = append(l.taken, hold)
		}
	}
	require.NoError(l.t, l.client.Sync(testzk.Context(l.t), "/"))
	for path := range l.locks {
		l.versions[path] = l.version(path)
	}
}

// version counts the children that were made and deleted.
func (l *late) version(path string) int32 {
	stat, err := l.other.Exists(testzk.Context(l.t), path)
	require.NoError(l.t, err)
	require.NotNil(l.t, stat, "the node of the lock is gone")
	return stat.Cversion
}

// wait has creates wait between A and the leader, and gives up the acquires that are to be.
func (l *late) wait() {
	l.link.up.hold()
	ctx, giveUp := context.WithCancel(testzk.Context(l.t))
	defer giveUp()
	var given sync.WaitGroup
	var creates [][]byte
	for path, what := range l.locks {
		creates = append(creates, []byte(path+"/_c_"))
		mu := newMutex(l.t, l.client, path)
		if what == abandoned {
			given.Go(func() { _, _ = mu.Acquire(ctx) })
			continue
		}
		go func() {
			hold, err := mu.Acquire(l.ctx)
			l.holds <- hold
			l.errors <- err
		}()
	}
	testzk.Eventually(l.t, func() bool { return l.link.up.waiting(creates...) }, "creates do not wait")
	giveUp()
	given.Wait()
}

// visit has the client go to B, look for all its nodes there, and create those anew that it waits for.
func (l *late) visit() {
	l.relayB.up.mark()
	l.relayA.refuse()
	l.relayB.allow()
	testzk.Eventually(l.t, func() bool {
		asked := string(l.relayB.up.delivered())
		for path, what := range l.locks {
			if !strings.Contains(asked, path) {
				return false
			}
			if what == waiting && l.version(path) == l.versions[path] {
				return false
			}
		}
		return true
	}, "the client does not look for its nodes at the other server")
	require.NoError(l.t, l.client.Sync(testzk.Context(l.t), "/")) // behind what it asked
}

// comeBack lets the creates go on their way once the client's session is behind them.
func (l *late) comeBack() {
	l.relayB.refuse()
	l.relayA.allow()
	asks := revalidation(l.session.ID(), l.session.Timeout())
	testzk.Eventually(l.t, func() bool {
		return l.link.up.waiting(asks) || l.session.Err() != nil
	}, "the client does not come back")
	stopLoad, err := load(testzk.Context(l.t), l.other)
	require.NoError(l.t, err)
	defer stopLoad()
	l.link.release()
	require.NoError(l.t, l.client.Sync(testzk.Context(l.t), "/")) // behind all of that
	l.relayB.allow()
}

// applied counts the locks of each kind at which there were more creates than the client had answers to.
func (l *late) applied() map[string]int {
	n := map[string]int{}
	for path, what := range l.locks {
		more := l.version(path) - l.versions[path]
		if what == abandoned && more > 0 || what == waiting && more > 1 {
			n[what]++
		}
	}
	return n
}

// settle requires that the other client gets all locks once those that it has are released, and that
// nothing is left in line.
func (l *late) settle() {
	for _, hold := range l.taken {
		require.NoError(l.t, hold.Release())
	}
	for range ofEach {
		testzk.Eventually(l.t, func() bool { return len(l.errors) > 0 }, "those that wait on do not get their locks")
		hold, err := <-l.holds, <-l.errors
		require.NoError(l.t, err)
		letGo(l.t, hold)
	}
	require.NoError(l.t, l.client.WaitConnected(testzk.Context(l.t)))
	for path := range l.locks {
		mu := newMutex(l.t, l.other, path)
		testzk.Eventually(l.t, func() bool {
			line, err := mu.Participants(testzk.Context(l.t))
			return err == nil && len(line) == 0
		}, "nodes are left in %s that nothing owns", path)
		hold, err := mu.Acquire(testzk.Context(l.t))
		require.NoError(l.t, err)
		require.NoError(l.t, hold.Release())
	}
}

// letGo releases a hold that may be lost. Its node may be deleted later.
func letGo(t *testing.T, hold *recipes.Hold) {
	t.Helper()
	if err := hold.Release(); err != nil && !errors.Is(err, recipes.ErrReleasePending) {
		require.ErrorIs(t, err, framework.ErrSessionLost)
	}
}

// load gives the leader so much to do that it learns that a session has come back to a server before
// it carries out the creates that came first.
func load(ctx context.Context, c *framework.Client) (stop func(), err error) {
	const node = "/load"
	if _, err := c.Create(ctx, node, nil); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	long := slices.Repeat([]framework.Op{framework.CheckOp(node, -1)}, 20_000) // some hundredths of a second of work
	var users sync.WaitGroup
	begun := make(chan struct{}, 4)
	for range cap(begun) {
		users.Go(func() {
			_, _ = c.Multi(ctx, long...)
			begun <- struct{}{}
			for ctx.Err() == nil {
				_, _ = c.Multi(ctx, long...)
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	return func() {
		cancel()
		users.Wait()
	}, nil
}

// watcher is a process that has a hold, which tells of it.
type watcher struct {
	*process
	timeout time.Duration
}

func startWatcher(t *testing.T, connect string, s settings) *watcher {
	t.Helper()
	return &watcher{startProcessWith(t, "watch", connect, s), s.Timeout}
}

// moved waits until the hold can be relied on until later than at the given moment, or has ended.
func (w *watcher) moved(t *testing.T, after int64) (latest turn) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		said := w.said()
		if len(said) == 0 {
			return false
		}
		latest = said[len(said)-1]
		return latest.Kind == "ended" || latest.Until > after
	}, "process %d: the leader's answers do not come", w.cmd.Process.Pid)
	return latest
}

// latest is what the process has said last.
func (w *watcher) latest(t *testing.T) turn { return w.moved(t, 0) }

// steady waits until heartbeats have been answered for a while, and the next one has been answered just now.
func (w *watcher) steady(t *testing.T) turn {
	t.Helper()
	begin := w.moved(t, 0)
	even := w.moved(t, begin.Until+int64(w.timeout/6))
	return w.moved(t, even.Until+int64(w.timeout/24))
}

// ended waits until the hold has ended.
func (w *watcher) ended(t *testing.T) turn {
	t.Helper()
	var last turn
	testzk.Eventually(t, func() bool { last = w.moved(t, 1<<62); return true }, "the hold does not end")
	return last
}

// next is a hold after a watched one, from when it was acquired.
type next struct {
	*recipes.Hold
	from int64
}

func acquired(t *testing.T, mu *mutex.Mutex) next {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*testzk.Patience)
	defer cancel()
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	from := now()
	require.NoError(t, hold.Err())
	return next{hold, from}
}

// check checks that the watched hold had ended when this one began, and releases this one. It returns
// how long before that was.
func (n next) check(t *testing.T, record *recorder, name string, watched turn) time.Duration {
	t.Helper()
	watched.Kind, watched.Lock = kindMutex, name
	own := turn{Kind: kindMutex, Lock: name, Token: n.Token(), From: n.from, To: n.from + 1}
	if asked := now(); n.Err() == nil {
		own.To = asked
	}
	record.keep(watched, own)
	if err := newLockHistory().add([]turn{watched, own}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	letGo(t, n.Hold)
	return time.Duration(own.From - watched.To).Round(time.Millisecond)
}

// silenced is a holder that nothing is heard of for a while.
type silenced struct {
	*watcher
	name, lock string
	begin, end func()
	before     turn
	missed     string // why the fault has not come about
}

// silences are ways to hear nothing of a client of a server.
func silences(t *testing.T, servers *network, server *ensemble.Server, timeout time.Duration, n int) []*silenced {
	holder := func(name, connect string) *silenced {
		lock := fmt.Sprintf("/silence-%d/%s", n, strings.ReplaceAll(name, " ", "-"))
		w := startWatcher(t, connect, settings{Timeout: timeout, Lock: lock})
		return &silenced{watcher: w, name: name, lock: lock}
	}
	paused := holder("process paused", server.Addr())
	paused.begin = func() { require.NoError(t, paused.cmd.Process.Signal(syscall.SIGSTOP)) }
	paused.end = func() { require.NoError(t, paused.cmd.Process.Signal(syscall.SIGCONT)) }
	link := servers.relay(server.Addr())
	requests := holder("requests kept back", link.addr())
	requests.begin, requests.end = link.up.hold, link.up.release
	link = servers.relay(server.Addr())
	answers := holder("answers kept back", link.addr())
	answers.begin, answers.end = link.down.hold, link.down.release
	return []*silenced{requests, answers, paused}
}

// shortest is how long all holds last without a further answer.
func shortest(t *testing.T, holders []*silenced) time.Duration {
	t.Helper()
	until := int64(math.MaxInt64)
	for _, h := range holders {
		until = min(until, h.latest(t).Until)
	}
	return time.Until(time.Unix(0, until))
}

// For a while nothing is heard of holders, and then their server is cut off from the leader before it
// has reported to the leader that they are alive: the process of one is paused, the requests of another are
// kept back, and the answers to a third.
func TestHoldsEndInTimeWhenTheirServerIsCutOffAfterASilence(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	const timeout = 12 * time.Second
	record := newRecorder(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithTick(time.Second), ensemble.WithConfig("syncLimit", "30"),
		ensemble.WithQuorumLink(servers.between))
	done := map[string]bool{}
	rounds(t, func(n int) string {
		leader, followers := rolesOf(t, e)
		link := servers.link(followers[0], leader)
		other := testzk.Connected(t, leader.Addr())
		holders := silences(t, servers, followers[0], timeout, n)
		for _, h := range holders {
			h.steady(t)
		}
		for _, h := range holders {
			h.begin()
		}
		time.Sleep(shortest(t, holders) - time.Second) // the fault, after which the holds are good
		for _, h := range holders {
			h.before = h.latest(t)
		}
		link.up.mark()
		for _, h := range holders {
			h.end()
		}
		for _, h := range holders { // the first answers after the silence
			if h.moved(t, h.before.Until+int64(timeout/100)).Kind == "ended" {
				h.missed = "the hold had ended"
			}
		}
		link.hold()
		reports := link.up.delivered()

		var missed []string
		for _, h := range holders {
			ago := acquired(t, newMutex(t, other, h.lock)).check(t, record, h.name, h.ended(t))
			reported, revalidated := heard(reports, h.before.Session, timeout)
			if reported {
				h.missed = "the server had reported the session"
			}
			t.Logf("%s: ended %v before the next hold; on another connection: %t %s",
				h.name, ago, revalidated, h.missed)
			if done[h.name] = done[h.name] || h.missed == ""; !done[h.name] {
				missed = append(missed, h.name+": "+h.missed)
			}
		}
		link.release()
		require.NoError(t, other.Close())
		return strings.Join(missed, ", ")
	})
}

// The leader stands still, and the others elect another one. When it goes on, it answers a client that knows no
// other server. After that it learns that its followers have left it.
func TestHoldsEndInTimeWhenTheLeaderWasFrozen(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	// The old leader often answers once only, so each heartbeat has servers of its own.
	t.Run("sync", func(t *testing.T) { endsInTimeWhenTheLeaderWasFrozen(t, false) })
	t.Run("quorum", func(t *testing.T) { endsInTimeWhenTheLeaderWasFrozen(t, true) })
}

func endsInTimeWhenTheLeaderWasFrozen(t *testing.T, quorumHeartbeat bool) {
	t.Parallel()
	const timeout = 24 * time.Second
	record := newRecorder(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithConfig("syncLimit", "60"), ensemble.WithQuorumLink(servers.between))
	leads := func(s *ensemble.Server) bool {
		mode, err := s.Command(testzk.Context(t), "srvr")
		return err != nil || strings.Contains(mode, "Mode: leader")
	}
	rounds(t, func(n int) (missed string) {
		old, followers := rolesOf(t, e)
		link := servers.relay(old.Addr())
		lock := fmt.Sprintf("/frozen-%d", n)
		holder := startWatcher(t, link.addr(), settings{Timeout: timeout, Lock: lock, Quorum: quorumHeartbeat})
		other := testzk.Connected(t, followers[0].Addr()+","+followers[1].Addr(), framework.WithSessionTimeout(timeout))
		holder.steady(t)
		require.NoError(t, old.Pause())
		for _, f := range followers {
			servers.link(f, old).hold()
			servers.link(f, old).dropNear()
		}
		thaw := time.After(timeout * 62 / 100) // the fault: just less than a hold lasts without an answer
		_, err := e.Leader(testzk.Context(t))
		require.NoError(t, err)
		require.NoError(t, other.WaitConnected(testzk.Context(t)))
		<-thaw
		if holder.latest(t).Kind == "ended" {
			missed = "the hold had ended before the leader went on"
		}
		link.down.mark()
		require.NoError(t, old.Resume())
		testzk.Eventually(t, func() bool { return len(link.down.delivered()) > 0 || !leads(old) },
			"the old leader goes on and answers nothing")
		for _, f := range followers {
			servers.link(f, old).release()
		}
		testzk.Eventually(t, func() bool { return !leads(old) }, "the old leader goes on leading")
		answered := len(link.down.delivered())
		link.refuse()
		if answered == 0 {
			missed = "the old leader answered nothing"
		}
		ago := acquired(t, newMutex(t, other, lock)).check(t, record, "frozen", holder.ended(t))
		t.Logf("the old leader answered %d bytes; the hold ended %v before the next one", answered, ago)
		require.NoError(t, other.Close())
		return missed
	})
}

// A server to which a session comes grants a shorter timeout.
func TestSessionFollowsTheTimeoutThatAReconnectGrants(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	const long, short = 60 * time.Second, 20 * time.Second
	record := newRecorder(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithServerConfig(1, "maxSessionTimeout", fmt.Sprint(short.Milliseconds())))
	all := e.Servers()
	strict, generous := servers.relay(all[0].Addr()), servers.relay(all[1].Addr())
	strict.refuse()
	holder := testzk.Connected(t, strict.addr()+","+generous.addr(), framework.WithSessionTimeout(long))
	other := testzk.Connected(t, all[2].Addr())
	hold, err := newMutex(t, holder, lockPath).Acquire(testzk.Context(t))
	require.NoError(t, err)
	session, err := holder.Session(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, long, session.Timeout())
	work := hold.Context(context.Background())
	ended := make(chan int64, 1)
	go func() {
		<-work.Done()
		ended <- now()
	}()

	generous.refuse()
	strict.allow()
	testzk.Eventually(t, func() bool {
		return session.Timeout() == short || session.Err() != nil
	}, "the server grants as much as before")
	until, moves := hold.ValidUntil(), 0
	testzk.Eventually(t, func() bool { // heartbeats keep the session, as often as the shorter timeout demands
		if moved := hold.ValidUntil(); moved.After(until.Add(short / 24)) {
			until = moved
			moves++
		}
		return moves == 9 || hold.Err() != nil
	}, "the leader's answers do not come")
	require.NoError(t, hold.Err(), "nothing was wrong with the session")

	watched := make(chan turn, 1)
	go func() { watched <- during(context.Background(), hold, time.Hour) }()
	strict.refuse()
	after := acquired(t, newMutex(t, other, lockPath))
	after.check(t, record, "the session with the shorter timeout", <-watched)
	late := time.Duration(<-ended - after.from)
	require.Less(t, late, 5*time.Second, "the context ends by the timeout that was granted first")
	t.Logf("the context ended %v before the next hold", -late.Round(time.Millisecond))
	strict.allow()
}
