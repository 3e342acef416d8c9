package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
)

// story is one run: it starts the processes, keeps the store, and sees to it that the accidents happen.
type story struct {
	config
	say    *program.Reporter
	fail   context.CancelCauseFunc // ends it
	client *framework.Client
	folder string
	start  time.Time
	store  store
	children   *child.Group[job]

	before, after sync.Once             // the accidents: before the effect, and after it
	late          atomic.Pointer[visit] // the request that was on its way when its sender died
	refused       atomic.Bool           // it was
	repeated      atomic.Bool           // a tick was that had its effect
}

// The ticks at which the accidents happen.
func (c config) fatalBefore() int { return max(2, c.ticks/4) }
func (c config) fatalAfter() int  { return c.ticks * 2 / 3 }

func (s *story) notePath() string { return s.folder + "/last-tick" }

// tell is the whole story. Nothing that it started is left when it returns.
func tell(ctx context.Context, connect string, cfg config, say *program.Reporter) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(cfg.session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s := &story{
		config: cfg, say: say, fail: fail, client: client,
		folder: "/docent-examples/singleton-cron-" + rand.Text(), // random only because nobody else is to take part in this story
	}
	if err := s.writeFirstNote(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Delete(context.WithoutCancel(ctx), s.notePath(), -1)) }()

	listener, url, err := child.Listen()
	if err != nil {
		return err
	}
	defer child.Serve(listener, s.handle)()
	s.children = child.NewGroup(func(number int) job {
		return job{
			Number: number, Connect: connect, Election: s.folder + "/leader", Note: s.notePath(), Session: cfg.session,
			Store: url, Start: s.start, Every: cfg.every, Ticks: cfg.ticks,
		}
	}, fail)
	defer func() { err = errors.Join(err, s.children.Stop()) }()
	return s.run(ctx)
}

// writeFirstNote says that no tick was run yet.
func (s *story) writeFirstNote(ctx context.Context) error {
	data, err := json.Marshal(note{})
	if err != nil {
		return err
	}
	_, err = s.client.Create(ctx, s.notePath(), data, framework.WithParents())
	return err
}

func (s *story) run(ctx context.Context) error {
	s.say.Text("A job, %d ticks, one each %v, and %d processes that could run it. One of them does: the leader.\n",
		s.ticks, s.every, s.processes)
	s.start = time.Now()
	for number := 1; number <= s.processes; number++ {
		if err := s.hire(number); err != nil {
			return err
		}
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	return s.conclude()
}

func (s *story) hire(number int) error {
	if err := s.children.Start(number); err != nil {
		return err
	}
	s.say.Line("Started process %d (%d).", number, s.children.Process(number).PID())
	return nil
}

// await waits until the last tick has been noted.
func (s *story) await(ctx context.Context) error {
	for {
		data, stat, changed, err := s.client.GetW(ctx, s.notePath())
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		var n note
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		if int(stat.Version) != n.Tick { // each time that the note is written its version grows by one
			return fmt.Errorf("the last note is of tick %d, and there were %d notes", n.Tick, stat.Version)
		}
		if n.Tick == s.ticks {
			return nil
		}
		select {
		case <-changed.Fired():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle is the store with an audience.
func (s *story) handle(_ string, v visit) (answer, error) {
	if v.Tick == s.fatalBefore() && s.killOnce(&s.before, v, "before that has an effect: its request to the store is still on its way") {
		s.late.Store(&v)
		return answer{}, errors.New("nobody is there who could read this")
	}
	a, err := s.store.put(v)
	if err != nil {
		if !errors.Is(err, fence.ErrStale) {
			s.fail(err)
		}
		return a, err
	}
	s.show(v, a)
	if v.Tick == s.fatalAfter() {
		s.killOnce(&s.after, v, "after that has had its effect, and before it can note it")
	}
	if late := s.late.Swap(nil); late != nil {
		s.arrives(*late)
	}
	return a, nil
}

// killOnce kills a leader, unless that was done before.
func (s *story) killOnce(once *sync.Once, v visit, when string) (killed bool) {
	once.Do(func() {
		killed = true
		s.children.Process(v.Process).Kill()
		s.say.Line("KILLED: %s runs tick %d, and dies (kill -9) %s.", v, v.Tick, when)
		s.say.Line("The servers wait for the session timeout. Process %d is started anew, at the end of the line ...", v.Process)
		if err := s.hire(v.Process); err != nil {
			s.fail(err)
		}
	})
	return killed
}

func (s *story) show(v visit, a answer) {
	if a.Before {
		s.repeated.Store(true)
		s.say.Line("tick %3d: %s runs it, but the store has it already, from %s: nothing happens", v.Tick, v, a.By)
		return
	}
	delay := ""
	if late := time.Since(job{Start: s.start, Every: s.every}.due(v.Tick)); late > s.every/2 {
		delay = fmt.Sprintf(", %.1f s late", late.Seconds())
	}
	s.say.Line("tick %3d: %s runs it%s", v.Tick, v, delay)
}

// arrives: the request of the dead leader reaches the store at last. The same happens if a leader is paused, right after it has asked if it
// leads, and goes on when another does.
func (s *story) arrives(late visit) {
	a, err := s.store.put(late)
	if !errors.Is(err, fence.ErrStale) {
		s.fail(fmt.Errorf("the late request of %s for tick %d was not refused: %+v, %w", late, late.Tick, a, err))
		return
	}
	s.refused.Store(true)
	s.say.Line("Too late, the request of %s for tick %d arrives. The store refuses it: %v", late, late.Tick, err)
}

// conclude checks what has to be true at the end, and tells it.
func (s *story) conclude() error {
	runs := s.store.all()
	switch {
	case len(runs) != s.ticks:
		return fmt.Errorf("%d ticks had an effect, not %d", len(runs), s.ticks)
	case !s.refused.Load():
		return errors.New("the dead leader's late request was not put to the test")
	case !s.repeated.Load():
		return errors.New("no tick was repeated")
	}
	s.say.Text("\nEach of the %d ticks had its effect exactly once:", len(runs))
	for first := 0; first < len(runs); {
		next := first + 1
		for next < len(runs) && runs[next].Token == runs[first].Token {
			next++
		}
		s.say.Text("  - ticks %d to %d by %s", first+1, next, runs[first])
		first = next
	}
	return nil
}
