package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// comeBackBound bounds the wait until a node that is kept is there again, once that is possible. On an
// idle machine that takes less than a second, which the test prints.
const comeBackBound = testzk.Patience

// witness follows by a plain connection which nodes workers keep.
type witness struct {
	conn *zk.Conn
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	seen map[string]bool
	gone map[string]time.Time // when a node was missed that had been seen
	at   []time.Time          // of all looks
}

func newWitness(t *testing.T, connect string) *witness {
	ctx, stop := context.WithCancel(context.Background())
	w := &witness{
		conn: observe(t, connect), stop: stop, done: make(chan struct{}),
		seen: map[string]bool{}, gone: map[string]time.Time{},
	}
	go w.look(ctx)
	t.Cleanup(func() { // before the connection is closed
		w.stop()
		<-w.done
	})
	return w
}

// look lists the nodes again and again.
func (w *witness) look(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		at := time.Now()
		kept, _, err1 := w.conn.Children(keptPath)
		members, _, err2 := w.conn.Children(groupPath)
		if err1 == nil && err2 == nil {
			w.note(at, kept, members)
		}
		pause(ctx, 20*time.Millisecond) // a poll
	}
}

func (w *witness) note(at time.Time, kept, members []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(w.at, at)
	before := w.seen
	w.seen = map[string]bool{}
	for dir, names := range map[string][]string{keptPath: kept, groupPath: members} {
		for _, name := range names {
			w.seen[dir+"/"+name] = true
		}
	}
	for node := range before {
		if !w.seen[node] {
			w.gone[node] = at
		}
	}
}

// goneSince returns when a node was missed, if it was since a moment.
func (w *witness) goneSince(node string, since time.Time) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.gone[node]
	return at, at.After(since)
}

// lastLook returns when the witness looked last before a moment.
func (w *witness) lastLook(before time.Time) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.at {
		if at.Before(before) {
			last = at
		}
	}
	return last
}

// trial has faults in order of what workers follow and keep.
type trial struct {
	t         *testing.T
	record    *recorder
	servers   *network
	ensemble  *ensemble.Ensemble
	witness   *witness
	followers *followers
	workers   []*siegeProcess
	writers   []*writer
	times     map[string][]time.Duration // until a node was there again, by kind
	stayed    map[string]int
	ledgers   ledgers
	different *bool // set if the servers have different nodes
}

func newTrial(t *testing.T, different *bool) *trial {
	tr := &trial{
		t: t, record: newRecorder(t), servers: newNetwork(t), different: different,
		times: map[string][]time.Duration{}, stayed: map[string]int{},
	}
	tr.ensemble = ensemble.Start(t, 3, ensemble.WithTick(200*time.Millisecond),
		ensemble.WithQuorumLink(tr.servers.between))
	tr.ledgers = newLedgers(t, strings.Split(tr.ensemble.Connect(), ",")...)
	tr.witness = newWitness(t, tr.ensemble.Connect())
	tr.followers = newFollowers(t, tr.record, observe(t, tr.ensemble.Connect()))
	for n := range 5 {
		tr.workers = append(tr.workers, newSiegeProcess(tr.servers, tr.ensemble, n, rand.Uint64()))
		tr.start(n, "first")
	}
	for n := range 3 {
		client := testzk.Connected(t, tr.ensemble.Connect())
		w := &writer{client: client, name: fmt.Sprintf("writer-%d", n), pause: 60 * time.Millisecond, below: n > 0,
			random: randomOf(rand.Uint64())}
		w.wrong = w.keepWrong
		tr.writers = append(tr.writers, w)
	}
	tr.agree("the start")
	return tr
}

// start starts a worker, or starts it again. To every third one the servers seem to be older.
func (tr *trial) start(n int, data string) {
	tr.workers[n].start(tr.t, tr.record, "follow", settings{
		Timeout: sessionTimeout, Name: fmt.Sprintf("w%d", n), Data: data, Older: n%3 == 0,
	})
	tr.followers.add(tr.workers[n])
}

// setAll has all workers keep other data.
func (tr *trial) setAll(data string) {
	for _, w := range tr.workers {
		if !w.keepsNone {
			w.set(data)
		}
	}
}

// nodes returns the nodes that a worker keeps, by kind.
func (tr *trial) nodes(n int) map[string]nodeOnServer { return tr.atLeast(n, 0) }

// atLeast waits until a worker keeps so many nodes, and returns them.
func (tr *trial) atLeast(n, count int) map[string]nodeOnServer {
	kept, by := map[string]nodeOnServer{}, map[string]nodeOnServer{}
	testzk.Eventually(tr.t, func() bool {
		clear(kept)
		clear(by)
		err1 := readTree(tr.followers.observer, keptPath, kept)
		err2 := readTree(tr.followers.observer, groupPath, kept)
		for node, found := range kept {
			for _, kind := range keptKinds {
				if isKept(node, kind, tr.workers[n].Name) {
					by[kind] = found
				}
			}
		}
		return err1 == nil && err2 == nil && len(by) >= count
	}, "the nodes of worker %d cannot be read, or there are not %d of them", n, count)
	return by
}

// step makes a fault while writers change the subtree. The fault returns from when on each worker can
// keep its nodes again. After it all is as it should be.
func (tr *trial) step(name string, fault func() (possible []time.Time)) {
	t := tr.t
	tr.record.note("%s", name)
	var before []map[string]nodeOnServer
	for n := range tr.workers {
		all := len(keptKinds) // for a moment they are not there if a busy machine has just lost a session
		if tr.workers[n].keepsNone {
			all = 0
		}
		before = append(before, tr.atLeast(n, all))
	}
	for _, w := range tr.workers {
		w.forgetStates()
	}
	begun := time.Now()
	possible := tr.whileWriting(fault)
	tr.agree(name)
	for n := range tr.workers {
		if !tr.workers[n].keepsNone {
			tr.measure(name, n, before[n], begun, possible[n])
		}
	}
	t.Logf("%s: %v", name, time.Since(begun).Round(time.Millisecond))
}

// whileWriting makes a fault while writers change the subtree, and waits until each has written after
// it. No writer runs any more when it ends, also by a failure of the test.
func (tr *trial) whileWriting(fault func() (possible []time.Time)) []time.Time {
	over, running := make(chan struct{}), sync.WaitGroup{}
	for _, w := range tr.writers {
		running.Go(func() { w.run(context.Background(), over) })
	}
	defer running.Wait()
	defer close(over)
	possible := fault()
	tr.written(5)
	return possible
}

// written waits until each writer has begun some more writes.
func (tr *trial) written(more int) {
	from := make([]int, len(tr.writers))
	for i, w := range tr.writers {
		from[i] = w.written()
	}
	for i, w := range tr.writers {
		testzk.Eventually(tr.t, func() bool { return w.written() >= from[i]+more }, "a writer is stuck")
	}
}

// agree waits until what workers follow and keep is equal to what the servers have.
func (tr *trial) agree(step string) {
	for _, w := range tr.writers {
		tr.followers.writes.add(w.take()...)
		tr.require(w.unexplained(), step)
	}
	diff := ""
	eventually(tr.t, func() bool {
		tr.require(tr.followers.ask(), step)
		diff = tr.followers.differences()
		return diff == ""
	}, func() string {
		tr.followers.keepLatest()
		tr.giveUpIfDifferent()
		return step + ":\n" + diff
	})
	tr.require(tr.followers.prove(), step)
}

// require ends the trial if something is wrong that different nodes of the servers do not explain.
func (tr *trial) require(err error, step string) {
	tr.t.Helper()
	if err != nil {
		tr.giveUpIfDifferent()
		require.NoError(tr.t, err, step)
	}
}

// giveUpIfDifferent ends the trial if the servers have, or had, different nodes: see ledgers. What workers
// follow then shows nothing of docent.
func (tr *trial) giveUpIfDifferent() {
	err := mismatch(tr.ensemble.Logs)
	if err == nil {
		err = tr.ledgers.compare(testzk.Patience, subtree, keptPath, groupPath)
	}
	if errors.Is(err, errDifferent) {
		*tr.different = true
		tr.t.Skipf("ZooKeeper has lost transactions: %v", err)
	}
}

// measure notes when the nodes of a worker were there again.
func (tr *trial) measure(step string, n int, before map[string]nodeOnServer, begun, possible time.Time) {
	for kind, now := range tr.nodes(n) {
		old := before[kind]
		require.NotNil(tr.t, old.stat, "%s: there was no node %s", step, now.path)
		if old.stat.EphemeralOwner == now.stat.EphemeralOwner {
			require.Equal(tr.t, old.stat.Czxid, now.stat.Czxid, "%s: %s was deleted in its session", step, now.path)
			tr.stayed[kind]++
			continue
		}
		created := time.UnixMilli(now.stat.Ctime)
		gone, missed := tr.witness.goneSince(old.path, begun)
		if !missed { // it was deleted and created again between two looks
			gone = tr.witness.lastLook(created)
		}
		took := max(0, created.Sub(later(possible, gone)))
		tr.record.note("%s: %s is there again after %v", step, now.path, took)
		tr.times[kind] = append(tr.times[kind], took)
		require.LessOrEqual(tr.t, took, comeBackBound, "%s: until %s was there again", step, now.path)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// summary returns a distribution of times.
func summary(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	at := func(part float64) time.Duration {
		return times[int(part*float64(len(times)-1))].Round(time.Millisecond)
	}
	within := 0
	for _, took := range times {
		if took <= time.Second {
			within++
		}
	}
	return fmt.Sprintf("%d times, %d of them within a second; median %v, 90%% %v, longest %v",
		len(times), within, at(0.5), at(0.9), at(1))
}

// awaitGone waits until the nodes of a worker are deleted.
func (tr *trial) awaitGone(since time.Time, nodes map[string]nodeOnServer) {
	for _, node := range nodes {
		testzk.Eventually(tr.t, func() bool {
			_, missed := tr.witness.goneSince(node.path, since)
			return missed
		}, "%s is not deleted", node.path)
	}
}

// sessionGranted waits until a server grants a session, and returns when it did.
func (tr *trial) sessionGranted() time.Time {
	ctx, cancel := context.WithCancel(context.Background())
	granted := make(chan time.Time, 3)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for _, s := range tr.ensemble.Servers() {
		asking.Go(func() {
			for ctx.Err() == nil {
				if grantsSession(s.Addr()) {
					granted <- time.Now()
					return
				}
				pause(ctx, 10*time.Millisecond) // a poll
			}
		})
	}
	select {
	case at := <-granted:
		return at
	case <-time.After(recoveryBound):
		require.FailNow(tr.t, "no server grants a session")
		return time.Time{}
	}
}

func grantsSession(addr string) bool {
	conn, err := rawzk.Dial(addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SendFrame(rawzk.Connect{Timeout: 2000, Password: make([]byte, 16)}.Encode()) != nil {
		return false
	}
	frame, err := conn.ReadFrame(time.Second)
	if err != nil {
		return false
	}
	answer, err := rawzk.DecodeConnected(frame)
	return err == nil && answer.Session != 0
}

// all returns the same moment for each worker.
func (tr *trial) all(moment time.Time) (possible []time.Time) {
	return slices.Repeat([]time.Time{moment}, len(tr.workers))
}

// Each fault concerns what workers follow and what they keep: caches of a subtree that writers change,
// a view of a group, a persistent.Node at a fixed path, one with a number, and a membership.
func TestCachesAndKeptNodesAreRightAfterEachFault(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	const ensembles = 3
	for n := range ensembles {
		different := false
		t.Run(fmt.Sprint("ensemble ", n+1), func(t *testing.T) {
			newTrial(t, &different).run()
		})
		if !different {
			return
		}
	}
	t.Errorf("the servers of all %d ensembles have different nodes", ensembles)
}

func (tr *trial) run() {
	t := tr.t
	tr.step("nothing fails", func() []time.Time { return tr.all(time.Now()) })
	tr.step("processes and links fail", tr.harmWorkers)
	tr.step("the leader is killed", func() []time.Time {
		leader, _ := rolesOf(t, tr.ensemble)
		require.NoError(t, leader.Kill())
		tr.setAll("leader killed")
		possible := tr.all(tr.sessionGranted())
		require.NoError(t, tr.startServer(leader))
		require.NoError(t, tr.ensemble.WaitReady(testzk.Context(t)))
		return possible
	})
	tr.step("the leader is paused", func() []time.Time {
		leader, _ := rolesOf(t, tr.ensemble)
		require.NoError(t, leader.Pause())
		tr.setAll("leader paused")
		possible := tr.all(tr.sessionGranted())
		require.NoError(t, leader.Resume())
		require.NoError(t, tr.ensemble.WaitReady(testzk.Context(t)))
		return possible
	})
	tr.step("all servers are restarted", func() []time.Time {
		tr.killServers()
		tr.setAll("restarted")
		return tr.startServers()
	})
	tr.step("the servers are down for longer than a session", func() []time.Time {
		tr.killServers()
		tr.setAll("down")
		for _, w := range tr.workers {
			w.awaitState(t, "lost")
		}
		return tr.startServers()
	})
	tr.step("nodes are closed while there is an outage", tr.closeInOutages)
	tr.step("a follower is cut off", func() []time.Time {
		leader, followers := rolesOf(t, tr.ensemble)
		link := tr.servers.link(followers[0], leader)
		link.hold()
		tr.setAll("follower cut off")
		tr.written(5)
		link.release()
		return tr.all(time.Now())
	})
	var processes []*process
	for _, w := range tr.workers {
		processes = append(processes, w.process)
	}
	finish(t, processes...)
	for _, kind := range slices.Sorted(maps.Keys(tr.times)) {
		t.Logf("%s: there again: %s; stayed %d times", kind, summary(tr.times[kind]), tr.stayed[kind])
	}
	t.Logf("%d events of caches", tr.followers.events)
}

// harmWorkers kills one worker, pauses another until its session has expired, cuts off two for as
// long, and cuts off one from the server that it is connected to.
func (tr *trial) harmWorkers() (possible []time.Time) {
	t, begun := tr.t, time.Now()
	possible = tr.all(begun)
	killed, paused, silent, refused, moved := tr.workers[0], tr.workers[1], tr.workers[2], tr.workers[3], tr.workers[4]
	var nodes []map[string]nodeOnServer
	for n := range tr.workers {
		nodes = append(nodes, tr.nodes(n))
	}
	require.NoError(t, killed.kill())
	tr.start(0, "killed")
	paused.stop()
	for _, relay := range silent.relays {
		relay.hold()
	}
	refused.refuse()
	used := moved.used(t)
	used.hold()
	for _, w := range []*siegeProcess{paused, silent, refused, moved} {
		w.set("harmed")
	}
	for n, end := range map[int]func(){1: paused.cont, 2: silent.allow, 3: refused.allow} {
		tr.awaitGone(begun, nodes[n])
		possible[n] = time.Now()
		end()
		for _, relay := range tr.workers[n].relays {
			relay.release()
		}
	}
	testzk.Eventually(t, func() bool {
		for _, relay := range moved.relays {
			if relay != used && relay.down.used() {
				return true
			}
		}
		return false
	}, "the worker stays at the server that is silent")
	used.release()
	return possible
}

func (tr *trial) killServers() {
	for _, s := range tr.ensemble.Servers() {
		require.NoError(tr.t, s.Kill())
	}
}

func (tr *trial) startServer(s *ensemble.Server) error {
	file, err := startRepaired(tr.t.Context(), s, filepath.Join(tr.t.TempDir(), "damaged"))
	if file != "" {
		tr.record.note("server %d is repaired: %s is set aside", s.ID(), file)
	}
	return err
}

func (tr *trial) startServers() (possible []time.Time) {
	var starting sync.WaitGroup
	for _, s := range tr.ensemble.Servers() {
		starting.Go(func() {
			if err := tr.startServer(s); err != nil {
				tr.t.Error(err)
			}
		})
	}
	possible = tr.all(tr.sessionGranted())
	starting.Wait()
	require.NoError(tr.t, tr.ensemble.WaitReady(testzk.Context(tr.t)))
	return possible
}

// closeInOutages closes what workers keep, but for the last one: at once, while its process is paused
// past its session, while it is cut off, and while all servers are down.
func (tr *trial) closeInOutages() (possible []time.Time) {
	t, begun := tr.t, time.Now()
	connected, paused, silent, down := tr.workers[0], tr.workers[1], tr.workers[2], tr.workers[3]
	connected.close()
	connected.checkClosed(t)
	nodes := tr.nodes(1)
	paused.stop()
	paused.close()
	for _, relay := range silent.relays {
		relay.hold()
	}
	silent.close()
	silent.checkClosed(t) // while it is cut off
	tr.awaitGone(begun, nodes)
	paused.cont()
	paused.checkClosed(t)
	for _, relay := range silent.relays {
		relay.release()
	}
	tr.killServers()
	down.close()
	down.checkClosed(t)
	return tr.startServers()
}
