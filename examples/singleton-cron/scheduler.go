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

// What "exactly once" can mean
//
// The job of a tick has an effect somewhere. The tick must also be noted, so that the next leader
// knows where to go on. A leader can die, or be paused, between the two. No other process can know
// for sure whether the first one happened:
//
//   - If the tick is noted before the effect, it is run at most once. The next leader goes on after
//     it, and its effect may be missing.
//   - If the tick is noted after the effect, it is run at least once. The next leader may run it
//     again.
//
// So exactly once needs a place that takes both together. Here the effects go to a store outside of
// ZooKeeper, which keeps the number of the tick with its effect. The leader notes the tick after
// the effect, and the store does two things:
//
//   - It does nothing for a tick that it has. If a leader died after the effect, the next leader
//     repeats the tick, and the repetition does no harm.
//   - It refuses a token that is older than one it has seen. If a leader was paused before the
//     effect, or its request takes long to arrive, the next leader runs the tick. The late request
//     is then refused. The number of the tick would be enough if the store has that tick already.
//     The token is enough for all late requests.
//
// The note is written by Term.Guard, in one transaction with the proof of the leadership, and only
// over the version that was read. So each tick is noted once, by the leader of that moment. If the
// effect is small enough to be kept in ZooKeeper, write it into the note, or into other nodes by
// the same Guard. Then the effect happens exactly once, and no store is needed.

// note is the content of the node at job.Note: the last tick that was run, and the process that ran
// it.
type note struct {
	Tick    int
	Process int
	Token   int64
}

// job is what a process gets from its parent when it starts.
type job struct {
	Number   int
	Connect  string // of ZooKeeper
	Election string // its path
	Note     string // the path of the note
	Session  time.Duration
	Store    string // its URL
	Start    time.Time
	Every    time.Duration // tick n is due at Start + n*Every; a real tick could be the number of a minute
	Ticks    int           // the number of the last tick
}

// scheduler is a process that could run the job.
type scheduler struct {
	job
	client *framework.Client
	store  child.Remote[request, answer]
}

func schedulerMain() int {
	return child.Main(os.Stdin, os.Stderr, "scheduler", func(ctx context.Context, j job) error {
		return runScheduler(ctx, j, scheduler.lead)
	})
}

// runScheduler takes part in the election until ctx ends, and calls lead in each of its terms.
func runScheduler(
	ctx context.Context, j job, lead func(scheduler, context.Context, *leader.Term) error,
) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	election, err := leader.New(client, j.Election, leader.WithID(fmt.Sprintf("process %d", j.Number)))
	if err != nil {
		return err
	}
	s := scheduler{j, client, child.NewRemote[request, answer]("store", j.Store)}
	return election.Run(ctx, func(ctx context.Context, t *leader.Term) error { return lead(s, ctx, t) })
}

// lead runs the job for each tick, from where the last leader stopped. After any error it can
// return: this process or another one is then elected, and begins by reading the note.
func (s scheduler) lead(ctx context.Context, t *leader.Term) error {
	// Without Sync, the server of this client might not yet know the last leader's note.
	if err := s.client.Sync(ctx, s.Note); err != nil {
		return err
	}
	for {
		last, version, err := s.last(ctx)
		if err != nil {
			return err
		}
		err = s.tick(ctx, t, last+1, version)
		// The note has another version if the answer to this leader's own write was lost.
		// The next read shows that.
		if err != nil && !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

// tick waits until a tick is due, runs the job, and notes the tick.
func (s scheduler) tick(ctx context.Context, t *leader.Term, tick int, version int32) error {
	if err := s.wait(ctx, tick); err != nil {
		return err
	}
	if err := s.run(ctx, t, tick); err != nil {
		return err
	}
	return s.note(ctx, t, tick, version)
}

// last returns the last tick that was noted, and the version of the note.
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

// wait waits until a tick is due. It returns at once if the tick was due while there was no leader.
// After the last tick it waits until ctx ends.
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

// run is the job. It only has an effect in the store.
func (s scheduler) run(ctx context.Context, t *leader.Term, tick int) error {
	_, err := s.store.Do(ctx, stepRun, request{s.Number, t.Token(), tick})
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
