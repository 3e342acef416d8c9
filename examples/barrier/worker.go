package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/barrier"
)

// job is what a worker gets from its parent when it starts.
type job struct {
	Number  int
	Connect string // of ZooKeeper
	Path    string // of everything here
	Session time.Duration
	Rounds  bool // the worker takes the place of one that has worked already
}

// barriers are what the workers and their parent wait for.
type barriers struct {
	gate   *barrier.Barrier   // closed until the workers may begin
	loaded *barrier.CountDown // open when each worker has loaded its data
	work   *barrier.Double    // the workers are inside while they work
	stop   *barrier.Barrier   // closed while the workers have to work
	rounds *barrier.Cyclic    // of the workers
	done   *barrier.CountDown // open when each worker has gone through all rounds
}

func newBarriers(client *framework.Client, path string) (b barriers, err error) {
	var errs [6]error
	b.gate, errs[0] = barrier.New(client, path+"/gate")
	b.loaded, errs[1] = barrier.NewCountDown(client, path+"/loaded", workers)
	b.work, errs[2] = barrier.NewDouble(client, path+"/work", workers)
	b.stop, errs[3] = barrier.New(client, path+"/stop")
	b.rounds, errs[4] = barrier.NewCyclic(client, path+"/rounds", workers)
	b.done, errs[5] = barrier.NewCountDown(client, path+"/done", workers)
	return b, errors.Join(errs[:]...)
}

// runWorker works until ctx ends.
func runWorker(ctx context.Context, j job) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b, err := newBarriers(client, j.Path)
	if err != nil {
		return err
	}
	w := worker{barriers: b, job: j, client: client}
	if !j.Rounds {
		err = w.begin(ctx)
	}
	if err == nil {
		err = w.goThroughRounds(ctx)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

type worker struct {
	barriers
	job
	client *framework.Client
}

// begin waits at the gate, loads, and works together with the others.
func (w worker) begin(ctx context.Context) error {
	if err := w.gate.Wait(ctx); err != nil {
		return err
	}
	if err := w.loaded.CountDown(ctx); err != nil { // after loading what the work needs
		return err
	}
	entry, err := w.work.Enter(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.stop.Wait(ctx); err != nil { // the work
		return errors.Join(err, entry.Leave(ctx))
	}
	if err := entry.Leave(ctx); err != nil { // nil: all others have worked, too
		return err
	}
	return w.report(ctx, began, time.Now())
}

// report tells the parent when the worker has begun to work and when it could leave.
func (w worker) report(ctx context.Context, began, left time.Time) error {
	_, err := w.client.Create(ctx, w.Path+"/reports/"+strconv.Itoa(w.Number),
		fmt.Appendf(nil, "%d %d", began.UnixNano(), left.UnixNano()), framework.Parents())
	return err
}

// goThroughRounds computes one round after the other, in step with the others.
func (w worker) goThroughRounds(ctx context.Context) error {
	for round := range int64(rounds) {
		generation, err := w.rounds.Await(ctx)
		if err != nil {
			return err
		}
		if generation != round {
			return fmt.Errorf("AHEAD: worker %d is in round %d, the others are in %d", w.Number, round, generation)
		}
	}
	return w.done.CountDown(ctx)
}
