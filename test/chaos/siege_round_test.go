package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// round makes faults, and checks everything: holds and additions while they go on, and the rest when
// they are over.
func (s *siege) round(n int) {
	s.beginRound(n)
	over, monitoring := make(chan struct{}), sync.WaitGroup{}
	monitoring.Go(func() { s.monitor(over) })
	stop := s.change()
	s.makeFaults()
	order := []string{orderDrain, orderCancel}[s.random.IntN(2)]
	s.repair()
	close(over)
	monitoring.Wait()
	stop()
	s.giveUpIfLost(s.ledgers.check(s.t))
	s.require(errors.Join(s.wrong, s.writer.unexplained()))
	repaired := time.Now()
	s.progress()
	s.note("round %d: the faults are over: %s", n+1, order)
	for _, w := range s.workers {
		require.NoError(s.t, w.order(order))
	}
	s.rest()
	err := s.ledgers.compare(testzk.Patience, subtree, keptPath, groupPath, "/siege", s.counterPath)
	if errors.Is(err, errDifferent) {
		s.giveUpIfLost(err)
	}
	require.NoError(s.t, err)
	s.eventually(func() bool {
		err = s.readTokens(recoveryBound)
		return err == nil
	}, func() string { return fmt.Sprintf("what holders have written cannot be read: %v", err) })
	s.require(errors.Join(s.gather(), s.checkTurns(true), s.checkCounter()))
	s.empty()
	s.acquireAll()
	s.watch()
	s.follow()
	took := time.Since(repaired)
	s.note("round %d: all is well after %v", n+1, took.Round(time.Millisecond))
	s.total.set(func() {
		s.total.rounds++
		s.total.kept += s.granted.count[keptSticky]
		s.total.recovery = max(s.total.recovery, took)
	})
}

// beginRound has all workers contend, and add to a new counter.
func (s *siege) beginRound(n int) {
	s.counterPath, s.counter = fmt.Sprintf("/counters/%d", n), newCounterHistory()
	s.turns, s.granted, s.restored = map[string][]turn{}, newGrants(s.acquirers), sync.Once{}
	s.cancelled = make(chan struct{})
	s.endFaults = sync.OnceFunc(func() { close(s.cancelled) })
	s.create(s.counterPath, make([]byte, 8))
	for _, w := range s.workers {
		require.NoError(s.t, w.order(orderGo+s.counterPath))
	}
}

// eventually waits for a condition that must be true soon after faults. Before it fails it gives the
// ensemble up if a server has other nodes than the leader: a waiter there may wait for a node that no
// other server has.
func (s *siege) eventually(cond func() bool, why func() string) {
	s.t.Helper()
	eventually(s.t, cond, func() string {
		s.giveUpIfLost(mismatch(s.logs))
		return why()
	})
}

// create creates a node, and returns the transaction. Servers of a busy machine may elect another leader
// meanwhile.
func (s *siege) create(path string, data []byte) (zxid int64) {
	s.t.Helper()
	var err error
	s.eventually(func() bool {
		_, err = s.fresh.Create(testzk.Context(s.t), path, data, framework.Parents())
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return false
		}
		var stat *zk.Stat
		if stat, err = s.fresh.Exists(testzk.Context(s.t), path); stat != nil {
			zxid = stat.Czxid
		}
		return stat != nil
	}, func() string { return fmt.Sprintf("%s cannot be created: %v", path, err) })
	return zxid
}

// giveUpIfLost ends this part of the siege if the servers have lost transactions. Whatever is wrong then
// shows nothing of docent. The siege goes on with other servers.
func (s *siege) giveUpIfLost(lost error) {
	s.t.Helper()
	if lost == nil {
		return
	}
	s.note("the servers have lost transactions, or one of them has: %v", lost)
	s.total.set(func() { s.total.givenUp++ })
	s.t.SkipNow()
}

// require ends the siege if something is wrong, or gives the ensemble up if a server has other nodes than
// the leader.
func (s *siege) require(err error) {
	s.t.Helper()
	if err == nil {
		return
	}
	s.note("wrong: %v", err)
	s.giveUpIfLost(mismatch(s.logs))
	s.t.Fatal(err)
}

// progress waits until all kinds of grants have come in this round.
func (s *siege) progress() {
	s.t.Helper()
	missing := ""
	s.eventually(func() bool {
		s.require(errors.Join(s.gather(), s.lives()))
		missing = s.granted.missing()
		return missing == ""
	}, func() string { return "the workers were granted none of these: " + missing })
}

// change changes the subtree and makes marks until stop is called.
func (s *siege) change() (stop func()) {
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.writer.run(context.Background(), over) })
	running.Go(func() { s.ledgers.run(over) })
	moving, marking := another(s.random), another(s.random)
	running.Go(func() {
		if err := s.limit.run(context.Background(), moving, over); err != nil {
			s.t.Errorf("the limit cannot be changed: %v", err)
		}
	})
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(below(marking, 200*time.Millisecond)): // the workload
				s.followers.marks.make(s.observer, siegeLines[n%len(siegeLines)])
			}
		}
	})
	for _, w := range s.keepers {
		random := another(s.random)
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(below(random, 4*time.Second)): // the workload
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
	s.eventually(func() bool {
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
		s.eventually(func() bool {
			s.ask()
			missing = s.followers.missing()
			return missing == "" || s.followers.gaps > gaps
		}, func() string { return "changes were not told: " + missing })
		return missing == ""
	}, func() string { return "changes are not told: " + missing })
}

func (s *siege) ask() {
	s.t.Helper()
	s.require(s.followers.ask())
}

// follow waits until what all workers follow and keep is equal to what the servers have.
func (s *siege) follow() {
	s.t.Helper()
	diff := ""
	s.eventually(func() bool {
		s.ask()
		diff = s.followers.differences()
		return diff == ""
	}, func() string {
		s.followers.keepLatest()
		return "what is followed or kept is not as on the servers:\n" + diff
	})
	s.require(s.followers.prove())
}

// repair ends what is left of the faults.
func (s *siege) repair() {
	for _, w := range s.all() {
		w.cont()
		for _, relay := range w.relays {
			relay.release()
			relay.slow(pace{})
			relay.allow()
		}
	}
	for _, from := range s.ensemble.Servers() {
		for _, to := range s.ensemble.Servers() {
			if from != to {
				release(s.servers.pair(from, to).all())
				s.servers.link(from, to).slow(pace{})
			}
		}
		if s.disks != nil {
			require.NoError(s.t, s.disks.release(from.ID()))
		}
		if !from.Running() {
			s.startServer(from)
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

// startServer starts a server, and repairs it first if it was killed while it wrote a file.
func (s *siege) startServer(server *ensemble.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), recoveryBound)
	defer cancel()
	n := 0
	s.total.set(func() { n = s.total.repairs })
	folder := filepath.Join(s.record.dir, fmt.Sprintf("damaged-%d-server-%d", n, server.ID()))
	file, err := startRepaired(ctx, server, folder)
	require.NoError(s.t, err)
	if file != "" {
		s.note("server %d is repaired: %s is set aside", server.ID(), file)
		s.total.set(func() { s.total.repairs++ })
	}
}

// restartServers ends an election that does not end by itself. After several faults a follower may
// name another leader than the one that it follows. A third server then finds no majority for any
// leader, while the two serve.
func (s *siege) restartServers() {
	for _, server := range s.ensemble.Servers() {
		require.NoError(s.t, server.Kill())
	}
	for _, server := range s.ensemble.Servers() {
		s.startServer(server)
	}
}

// rest waits until all workers rest.
func (s *siege) rest() {
	s.t.Helper()
	for _, w := range s.workers {
		s.eventually(func() bool {
			said := w.said()
			return len(said) > 0 && said[len(said)-1].Kind == kindResting
		}, func() string { return fmt.Sprintf("worker %d does not come to rest; %s", w.number, s.left()) })
	}
}

// empty waits until no queue has a node. The workers have no hold and do not acquire, and their
// sessions are alive.
func (s *siege) empty() {
	s.t.Helper()
	s.eventually(func() bool {
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
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), recoveryBound)
	defer cancel()
	for _, a := range s.acquirers {
		s.eventually(func() bool {
			hold, err := a.acquire(ctx)
			if err != nil {
				s.record.note("%s %v: %v", a.kind, a.locks, err)
				return false
			}
			return hold.Release() == nil
		}, func() string { return fmt.Sprintf("nothing gets %v any more: %s", a.locks, s.left()) })
	}
	s.eventually(func() bool {
		err = leadOnce(ctx, s.fresh)
		return err == nil
	}, func() string { return fmt.Sprintf("nothing is elected any more: %v; %s", err, s.left()) })
}
