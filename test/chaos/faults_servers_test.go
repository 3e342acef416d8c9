package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// target is a server that faults stop and start again, one fault at a time.
type target struct {
	stopping sync.Mutex
	freezing sync.Mutex
	backup   string // the folder with older data, if there is one
}

// stop reports whether this fault may stop a server, which may be nil. Other faults then do not, until
// done is called.
func (a *activeFault) stop(s *ensemble.Server) (may bool, done func()) {
	if s == nil {
		return false, nil
	}
	t := a.targets[s.ID()]
	return t.stopping.TryLock(), t.stopping.Unlock
}

// start starts a server again, after a while.
func (a *activeFault) start(s *ensemble.Server, from, to time.Duration) {
	a.wait(from, to)
	_ = s.Start(testzk.Context(a.t)) // repair tries again
}

// backUp keeps the data of a server that is down, if none is kept yet.
func (a *activeFault) backUp(s *ensemble.Server) {
	t, folder := a.targets[s.ID()], filepath.Join(a.record.dir, fmt.Sprintf("server-%d", s.ID()))
	if t.backup == "" && s.Backup(folder) == nil {
		t.backup = folder
	}
}

func (a *activeFault) kill(s *ensemble.Server) {
	may, done := a.stop(s)
	if !may {
		return
	}
	defer done()
	if !s.Running() || s.Kill() != nil {
		return
	}
	a.came("server %d", s.ID())
	a.backUp(s)
	a.start(s, 0, 4*time.Second)
}

func (a *activeFault) freeze(s *ensemble.Server) {
	if s == nil {
		return
	}
	t := a.targets[s.ID()]
	if !t.freezing.TryLock() { // the other fault would resume it
		return
	}
	defer t.freezing.Unlock()
	if s.Pause() != nil {
		return
	}
	a.came("server %d", s.ID())
	a.wait(300*time.Millisecond, 6*time.Second)
	_ = s.Resume() // not if it was killed meanwhile
}

// freezeOnly freezes the leader while it is the only server that a worker can reach, for up to two
// thirds of a timeout.
func (a *activeFault) freezeOnly() {
	leader, w := a.leader(), a.worker()
	if leader == nil || !a.targets[leader.ID()].freezing.TryLock() {
		return
	}
	defer a.targets[leader.ID()].freezing.Unlock()
	w.confine(leader)
	a.wait(500*time.Millisecond, time.Second)
	if w.relayTo(leader).session() != 0 && leader.Pause() == nil {
		a.came("server %d, worker %d", leader.ID(), w.number)
		a.wait(siegeTimeout/6, siegeTimeout*2/3)
		_ = leader.Resume()
		a.wait(500*time.Millisecond, 2*time.Second)
		w.refuse()
		a.wait(0, siegeTimeout)
	}
	w.allow()
}

// restartAll stops the servers as an operator does, one after another, and waits for each.
func (a *activeFault) restartAll() {
	stopped := 0
	for _, n := range a.random.Perm(len(a.ensemble.Servers())) {
		s := a.ensemble.Servers()[n]
		may, done := a.stop(s)
		if !may {
			continue
		}
		if s.Running() && s.Stop() == nil {
			stopped++
		}
		a.backUp(s)
		a.start(s, 0, time.Second)
		a.waitServing()
		done()
	}
	if stopped > 1 {
		a.came("%d servers", stopped)
	}
}

// loseData stops a server and starts it with older data, or without any. The ensemble loses nothing:
// only one server in a round loses data, and only while the others have all transactions. They have
// them once a transaction was committed while the server was down.
func (a *activeFault) loseData(all bool) {
	a.restored.Do(func() {
		s := a.server()
		may, done := a.stop(s)
		if !may {
			return
		}
		defer done()
		if s.Kill() != nil {
			return
		}
		a.wait(0, 2*time.Second)
		folder := a.targets[s.ID()].backup
		if a.commits() && (all && s.Wipe() == nil || !all && folder != "" && s.Restore(folder) == nil) {
			a.came("server %d", s.ID())
		}
		a.start(s, 0, time.Second)
		a.waitServing()
	})
}

func (a *activeFault) commits() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return a.fresh.Sync(ctx, "/") == nil
}

// stallDisk keeps back what a server writes to its log. The fault is counted once a write waits.
func (a *activeFault) stallDisk(s *ensemble.Server) {
	if a.disks == nil || s == nil || a.disks.stall(s.ID()) != nil {
		return
	}
	a.wait(300*time.Millisecond, 8*time.Second)
	if a.disks.waits(s.ID()) {
		a.came("server %d", s.ID())
	}
	_ = a.disks.release(s.ID()) // repair tries again
}
