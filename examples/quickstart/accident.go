package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/fence"
)

// victim is the worker that was killed.
type victim struct {
	visit // the write that it did not get to
	at    time.Time
}

// handle is the store with an audience: it tells what happens, and sees to it that the accident happens. Each step of a worker comes
// through here, and the worker goes on when it returns.
func (s *show) handle(step string, v visit) (answer, error) {
	a, err := s.store.apply(step, v)
	if err != nil {
		if !errors.Is(err, fence.ErrStale) {
			s.fail(err)
		}
		return a, err
	}
	switch step {
	case stepEnter:
		if a.Turn == 1 {
			s.assemble()
		}
		s.entered(v)
	case stepRead:
		if a.Turn >= s.fatalTurn() {
			s.accident.Do(func() { s.killHolder(v, a.Value) })
		}
	case stepWrite:
		s.say.turn(a.Turn, v)
		s.wrote(v)
	}
	return a, nil
}

// assemble waits until all workers are in line. On a slow machine the first could have many turns before the last has started.
func (s *show) assemble() {
	for s.ctx.Err() == nil {
		line, err := s.lock.Participants(s.ctx)
		if err == nil && len(line) >= s.cfg.workers {
			return
		}
		_ = sleep(s.ctx, thinking)
	}
}

// fatalTurn is late enough for each worker to have had a turn, and so early that at least one other worker has something left to do.
func (s *show) fatalTurn() int { return 1 + s.cfg.workers*s.cfg.increments/3 }

// killHolder kills the worker that holds the lock and has just read the record. It cannot release the lock any more, and nobody else
// can do it: to the servers it looks like a worker that thinks for a long time, until its session ends.
func (s *show) killHolder(v visit, record int) {
	v.Value = record + 1
	p := s.children[v.Worker-1]
	s.say.Line("worker %d holds the lock (token %d) and has read the record, %d. NOW IT IS KILLED (kill -9, process %d).",
		v.Worker, v.Token, record, p.PID())
	p.Kill()
	s.store.crashed(v.Worker)
	s.victim.Store(&victim{visit: v, at: time.Now()})
	if line := s.whoIsInLine(); line != "" {
		s.say.Line("In line for the lock, the holder first: %s.", line)
	}
	s.say.Line("Worker %d is dead, but the lock is still its own. The servers let it go when they have heard nothing from", v.Worker)
	s.say.Line("worker %d for the session timeout, %v. This wait is that timeout, everybody has to wait for it ...", v.Worker, s.agreed)
}

// whoIsInLine asks the servers. If they do not answer the show goes on without.
func (s *show) whoIsInLine() string {
	ctx, cancel := context.WithTimeout(s.ctx, child.Grace)
	defer cancel()
	line, err := s.lock.Participants(ctx)
	if err != nil {
		return ""
	}
	names := make([]string, len(line))
	for i, p := range line {
		names[i] = string(p.Data)
	}
	return strings.Join(names, ", ")
}

// entered notices that the lock has passed on.
func (s *show) entered(next visit) {
	v := s.victim.Load()
	if v == nil {
		return
	}
	s.handOver.Do(func() {
		waited := time.Since(v.at)
		s.passedOn.Store(int64(waited))
		s.say.Line("... %.1f s after the kill the lock has passed on to worker %d, with a larger token: %d.",
			waited.Seconds(), next.Worker, next.Token)
	})
}

// wrote lets the dead worker's write arrive, right after the first write of those who came later. This is not far-fetched: a request may
// be on its way for long, and a worker may not be dead but paused. It would overwrite what was written just now.
func (s *show) wrote(next visit) {
	v := s.victim.Load()
	if v == nil {
		return
	}
	s.late.Do(func() {
		s.say.Line("Too late, the dead worker's write arrives: record %d -> %d, with token %d.", v.Value-1, v.Value, v.Token)
		_, err := s.remote.Do(s.ctx, stepWrite, v.visit)
		if !errors.Is(err, fence.ErrStale) {
			s.fail(errors.Join(errors.New("the dead worker's late write was not refused for its token"), err))
			return
		}
		s.refused.Store(true)
		s.say.Line("The store refuses it: token %d is older than %d. Without that, worker %d's work would be overwritten.", v.Token, next.Token, next.Worker)
	})
}
