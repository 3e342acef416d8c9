package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// What "exactly once" can mean. The job of a tick has an effect somewhere, and the tick has to be noted, so that the next leader knows where
// to go on. Whoever does one after the other can die, or be paused, in between, and nobody can know for sure if it did the first:
//
//   - noted before the effect, the tick is run at most once: the next leader goes on after it, and its effect may be missing;
//   - noted after the effect, it is run at least once: the next leader runs it again.
//
// So exactly once needs a place that takes both together. Here the effects go to a store outside of ZooKeeper, which keeps the number of the
// tick with its effect. We note after the effect, and the store
//
//   - does nothing for a tick that it has: if the leader died after the effect, the next one repeats the tick, and it does no harm;
//   - refuses a token that is older than one it has seen: if the leader was paused before the effect, or its request is on its way for long,
//     the next one runs the tick, and the request of the old one, when it comes, is refused. For a tick that the store has the number
//     would do. But not all late requests are of that kind, and the token holds for them all.
//
// The note is written by Term.Guard, in one transaction with the proof that we lead, and only over the version that we have read: each tick
// is noted once, by somebody who led at that moment. If the effect is small enough to be kept in ZooKeeper itself, write it into the
// note, or into other nodes by the same Guard. Then that is exactly once, and there is no need of a store.

// note is what the node at job.Note says: the last tick that was run, and by whom.
type note struct {
	Tick    int
	Process int
	Token   int64
}

// job is what a process is told when it starts.
type job struct {
	Number   int
	Connect  string // of ZooKeeper
	Election string // its path
	Note     string // the path of the note
	Session  time.Duration
	Store    string // its URL
	Start    time.Time
	Every    time.Duration // tick n is due at Start + n*Every. By the clock on the wall, it could be the number of the minute
	Ticks    int           // the last one
}

// scheduler is a process that could run the job.
type scheduler struct {
	job
	client *framework.Client
	store  child.Remote[visit, answer]
}

func schedulerMain() int {
	return child.Main(os.Stdin, os.Stderr, "scheduler", func(ctx context.Context, j job) error { return stand(ctx, j, scheduler.lead) })
}

// stand is the life of a process.
func stand(ctx context.Context, j job, lead func(scheduler, context.Context, *leader.Term) error) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	election, err := leader.New(client, j.Election, leader.WithID(fmt.Sprintf("process %d", j.Number)))
	if err != nil {
		return err
	}
	s := scheduler{j, client, child.NewRemote[visit, answer]("store", j.Store)}
	return election.Run(ctx, func(ctx context.Context, t *leader.Term) error { return lead(s, ctx, t) })
}

// lead runs the job for each tick from where the last leader stopped. Whatever goes wrong, to return is right: another leads then, or we do
// again, a little later, and begin with reading the note.
func (s scheduler) lead(ctx context.Context, t *leader.Term) error {
	if err := s.client.Sync(ctx, s.Note); err != nil { // the server that we ask may not know yet what the last leader has noted
		return err
	}
	for {
		last, version, err := s.last(ctx)
		if err != nil {
			return err
		}
		err = s.tick(ctx, t, last+1, version)
		// Of another version is the note if the answer to our own writing was lost: to read it tells.
		if err != nil && !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

// tick waits for a tick, and runs the job.
func (s scheduler) tick(ctx context.Context, t *leader.Term, tick int, version int32) error {
	if err := s.wait(ctx, tick); err != nil {
		return err
	}
	if err := s.run(ctx, t, tick); err != nil {
		return err
	}
	return s.note(ctx, t, tick, version)
}

// last is the last tick that was run, and the version of the note.
func (s scheduler) last(ctx context.Context) (tick int, version int32, err error) {
	data, stat, err := s.client.Get(ctx, s.Note)
	if err != nil {
		return 0, 0, err
	}
	var n note
	if err := json.Unmarshal(data, &n); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", s.Note, err)
	}
	return n.Tick, stat.Version, nil
}

// wait returns when a tick is due: at once if that was while nobody led. After the last one it waits for ever.
func (s scheduler) wait(ctx context.Context, tick int) error {
	var due <-chan time.Time
	if tick <= s.Ticks {
		due = time.After(time.Until(s.due(tick)))
	}
	select {
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (j job) due(tick int) time.Time { return j.Start.Add(time.Duration(tick) * j.Every) }

// run is the job. This one does nothing but have an effect.
func (s scheduler) run(ctx context.Context, t *leader.Term, tick int) error {
	_, err := s.store.Do(ctx, stepRun, visit{s.Number, t.Token(), tick})
	return err
}

func (s scheduler) note(ctx context.Context, t *leader.Term, tick int, version int32) error {
	data, err := json.Marshal(note{tick, s.Number, t.Token()})
	if err != nil {
		return err
	}
	_, err = t.Guard(ctx, framework.SetOp(s.Note, data, version))
	return err
}
