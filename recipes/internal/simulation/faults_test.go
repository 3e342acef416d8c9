package simulation_test

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// disturb applies the scenario's faults one after another. calm stops the faults that go on.
func (s *simulation) disturb() (calm func()) {
	stop := make(chan struct{})
	var moving sync.WaitGroup
	if s.restless {
		random := fork(s.random)
		moving.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(upTo(random, 300*time.Millisecond)):
				}
				c := s.srv.Client(s.members[random.IntN(len(s.members))].name)
				[]func(){c.Drop, c.Reset}[random.IntN(2)]()
			}
		})
	}
	for range s.faults {
		time.Sleep(upTo(s.random, 2*time.Second))
		m := s.members[s.random.IntN(len(s.members))]
		switch {
		case s.closing && s.random.IntN(6) == 0:
			m.close()
			m.open()
		case s.taking && s.random.IntN(6) == 0:
			s.take(s.srv.Client(m.name))
		case s.random.IntN(8) == 0:
			s.setLimit(s.random.IntN(4))
		case s.random.IntN(6) == 0:
			s.harmServer()
		default:
			s.strikes.Strike(s.srv.Client(m.name))
		}
	}
	s.setLimit(2)
	time.Sleep(2 * sessionTimeout)
	s.srv.ResetFaults()
	return func() {
		close(stop)
		moving.Wait()
	}
}

// harmServer applies a random fault to all servers or to a follower.
func (s *simulation) harmServer() {
	r := s.random
	switch n := r.IntN(5); {
	case n == 0:
		require.NoError(s.t, s.srv.Restart())
	case n == 1:
		s.srv.Stop()
		time.Sleep(upTo(r, sessionTimeout))
		require.NoError(s.t, s.srv.Start())
	case n == 2:
		s.srv.SetReadOnly(true)
		time.Sleep(upTo(r, sessionTimeout))
		s.srv.SetReadOnly(false)
	case n == 3 || len(s.followers) == 0:
		s.srv.Pause()
		time.Sleep(upTo(r, 2*sessionTimeout))
		s.srv.Resume(zktest.ResumeOrder(r.IntN(2)))
	default:
		f := s.followers[r.IntN(len(s.followers))]
		f.Freeze()
		time.AfterFunc(upTo(r, sessionTimeout), f.Thaw)
	}
}

// take expires a client's sessions, or deletes a lock node of any client.
func (s *simulation) take(c *zktest.Client) {
	if s.random.IntN(2) == 0 {
		for _, session := range c.Sessions() {
			s.checker.takeAway(session.Ephemerals, func() { _ = session.Expire() })
		}
		return
	}
	all := directories()
	dir := all[s.random.IntN(len(all))]
	names, _ := s.srv.Children(dir)
	names = slices.DeleteFunc(names, func(name string) bool { return !isLockNode(dir + "/" + name) })
	number := func(name string) string { return name[len(name)-10:] }
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	if len(names) > 0 {
		p := dir + "/" + names[s.random.IntN(len(names))]
		s.checker.takeAway([]string{p}, func() { _ = s.srv.Delete(p) })
	}
}
