package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

// effort is the limits of the time that everything takes.
type effort struct {
	rounds int           // that count; one more comes before them
	few    int           // limit of rounds for slow workloads
	long   time.Duration // of one run
	budget time.Duration // after which no workload begins
	many   many
}

// many is the sizes of workloads with many things.
type many struct{ paths, sessions int }

// warmUp is the factor by which the round that does not count is longer. Java compiles its code in
// this round.
const warmUp = 3

// idleTime is how long idle sessions are watched: for two heartbeats of each, if they are sent in each
// sixth of the session timeout.
const idleTime = peer.SessionTimeout / 3

// place is the servers of one setting.
type place interface {
	// servers returns the addresses for a peer, and "" if there are none.
	servers(peer string) string
	// commits returns the number of transactions so far, and 0 if that is not known for the peer.
	commits(ctx context.Context, peer string) (int64, error)
	// received returns the number of requests that the servers have received so far.
	received(ctx context.Context) (int64, error)
	// kill kills the server. revive starts it again, and returns when it serves.
	kill() error
	revive(ctx context.Context) error
}

// measurer measures peers in one setting.
type measurer struct {
	setting string
	peers   map[string]contender
	place   place
	effort  effort
}

// measure runs the peers of a workload in turns, round by round. The first round only warms up.
func (m *measurer) measure(ctx context.Context, w workload) ([]*report.Series, error) {
	all, opened := make([]*report.Series, len(w.entries)), make([]bool, len(w.entries))
	for i, e := range w.entries {
		all[i] = &report.Series{Setting: m.setting, Workload: w.name, Label: e.label}
		if !w.alone {
			err := m.open(w, e)
			opened[i] = err == nil
			m.note(all[i], err)
		}
	}
	for round := range 1 + m.rounds(w) {
		for _, turn := range order(len(w.entries), round) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if all[turn].Reason == "" {
				m.note(all[turn], m.turn(ctx, w, w.entries[turn], round, all[turn]))
			}
		}
	}
	for i, e := range w.entries {
		if opened[i] {
			m.note(all[i], m.peers[e.peer].close(e.label))
		}
	}
	return all, nil
}

// order returns the order of n peers in a round: a row of a Williams square, and if n is odd, that row
// backwards in the round after it. In n rounds, or 2n if n is odd, each peer comes equally often at each
// place, and behind each other peer. What a peer leaves to the servers, such as data that has not reached
// the disk, then meets each of the others.
func order(n, round int) []int {
	row, backwards := round, false
	if n%2 == 1 {
		row, backwards = round/2, round%2 == 1
	}
	all := make([]int, n)
	for i := range all {
		next := n - i/2
		if i%2 == 1 {
			next = (i + 1) / 2
		}
		all[i] = (next + row) % n
	}
	if backwards {
		slices.Reverse(all)
	}
	return all
}

// rounds returns the number of rounds after the first one, which counts if there are few.
func (m *measurer) rounds(w workload) int {
	if w.once > 0 {
		return min(w.once, m.effort.few) - 1
	}
	return m.effort.rounds
}

// note notes the error of a peer, which then has no further turns.
func (m *measurer) note(s *report.Series, err error) {
	if err == nil || s.Reason != "" {
		return
	}
	s.Reason = err.Error()
	if !errors.Is(err, errUnsupported) && !errors.Is(err, errAbsent) {
		log.Printf("%s, %s, %s: %v", s.Setting, s.Workload, s.Label, err)
	}
}

var errAbsent = errors.New("not there")

func (m *measurer) open(w workload, e entry) error {
	job := e.job
	job.Servers, job.Path = m.place.servers(e.peer), fmt.Sprintf("/bench/%s/%s", w.name, e.label)
	if m.peers[e.peer] == nil || job.Servers == "" {
		return errAbsent
	}
	return m.peers[e.peer].open(e.label, job)
}

// turn is one run of one peer.
func (m *measurer) turn(ctx context.Context, w workload, e entry, round int, s *report.Series) (err error) {
	if w.alone {
		if err := m.open(w, e); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.peers[e.peer].close(e.label)) }()
	}
	long := m.effort.long
	switch {
	case w.idle:
		long = idleTime
	case round == 0 && w.once == 0:
		long *= warmUp
	}
	r, err := m.run(ctx, w, e, long)
	if err != nil {
		return err
	}
	if round > 0 || w.once > 0 {
		s.Rounds = append(s.Rounds, r)
	}
	return nil
}

// run returns an error if the peer has not done its work.
func (m *measurer) run(ctx context.Context, w workload, e entry, long time.Duration) (peer.Result, error) {
	before, err := m.place.commits(ctx, e.peer)
	if err != nil {
		return peer.Result{}, err
	}
	r, err := m.under(ctx, w, func() (peer.Result, error) { return m.counted(ctx, w, e, long) })
	if err != nil {
		return r, err
	}
	after, err := m.place.commits(ctx, e.peer)
	switch committed := after - before; {
	case err != nil:
		return r, err
	case r.Ops == 0 || r.Took <= 0:
		return r, errors.New("did nothing")
	case r.Overlaps > 0:
		return r, fmt.Errorf("%d times two threads held a lock at once", r.Overlaps)
	case before > 0 && committed < int64(w.commits)*r.Ops:
		return r, fmt.Errorf("reports %d operations, and the servers %d transactions", r.Ops, committed)
	}
	return r, nil
}

// counted runs a peer. If the workload is idle, it also counts the requests that the servers receive.
func (m *measurer) counted(ctx context.Context, w workload, e entry, long time.Duration) (peer.Result, error) {
	if !w.idle {
		return m.peers[e.peer].run(e.label, long)
	}
	rest(ctx, idleTime/4) // so that no heartbeat falls on the end, if all sessions began at the same time
	before, err := m.place.received(ctx)
	if err != nil {
		return peer.Result{}, err
	}
	r, err := m.peers[e.peer].run(e.label, long)
	if err != nil {
		return r, err
	}
	after, err := m.place.received(ctx)
	r.Figures = map[string]float64{report.Received: float64(after - before)}
	return r, err
}

// under calls run while the server is restarted, if the workload is a storm.
func (m *measurer) under(ctx context.Context, w workload, run func() (peer.Result, error)) (peer.Result, error) {
	if !w.storm {
		return run()
	}
	if err := m.place.kill(); err != nil {
		return peer.Result{}, err
	}
	back := make(chan error, 1)
	go func() { back <- m.place.revive(ctx) }()
	r, err := run()
	return r, errors.Join(err, <-back)
}
