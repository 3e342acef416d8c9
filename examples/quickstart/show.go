package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
)

// folder is where the locks of all runs are. Each run has one of its own below it.
const folder = "/docent-quickstart"

// show is one run: it directs the workers, and watches them through the store.
type show struct {
	cfg    config
	say    *narrator
	stderr io.Writer
	ctx    context.Context // of the whole run
	fail   context.CancelCauseFunc
	client *framework.Client
	path   string // of the lock
	lock   *mutex.Mutex
	agreed time.Duration // the session timeout that the servers granted
	store  *store
	url    string      // where the workers find it
	remote remoteStore // the same, as they see it
	children   []*child.Process
	ended  chan *child.Process

	// What accident.go keeps.
	victim   atomic.Pointer[victim] // nil until one has been killed
	accident sync.Once
	handOver sync.Once
	passedOn atomic.Int64 // the time.Duration from the kill to the next holder
	late     sync.Once
	refused  atomic.Bool // the late write was
}

// connecting is how long the servers may take to answer at first.
const connecting = 15 * time.Second

// perform is the whole show. Nothing that it started is left when it returns.
func perform(ctx context.Context, cfg config, say *narrator, stderr io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.limit, fmt.Errorf("it took longer than %v", cfg.limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &show{cfg: cfg, say: say, stderr: stderr, ctx: ctx, fail: fail, store: newStore()}

	say.intro(cfg)
	connect, stop, err := startServer(cfg.connect, say)
	if err != nil {
		return reason(ctx, err)
	}
	defer stop()
	return reason(ctx, s.runOn(connect))
}

// reason puts first why the run was ended before its time, if it was.
func reason(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil || errors.Is(err, cause):
		return err
	case errors.Is(cause, errInterrupted):
		return cause // what it was about to do does not matter
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func (s *show) runOn(connect string) (err error) {
	s.client, err = framework.New(connect, framework.WithSessionTimeout(s.cfg.session))
	if err != nil {
		return usageError{fmt.Errorf("-connect: %w", err)}
	}
	defer func() { err = errors.Join(err, s.client.Close()) }()
	if err := s.prepare(); err != nil {
		return err
	}
	defer s.cleanUp()
	return s.run(connect)
}

// prepare asks the servers for a session, as each worker will.
func (s *show) prepare() (err error) {
	s.path = folder + "/" + strings.ToLower(rand.Text())
	if s.lock, err = mutex.New(s.client, s.path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, connecting)
	defer cancel()
	if err := s.client.WaitConnected(ctx); err != nil {
		return err
	}
	session, err := s.client.Session(ctx)
	if err != nil {
		return err
	}
	s.agreed = session.Timeout()
	return nil
}

func (s *show) run(connect string) error {
	listener, url, err := child.Listen()
	if err != nil {
		return err
	}
	s.url, s.remote = url, newRemoteStore(url)
	s.ended = make(chan *child.Process, s.cfg.workers)
	err = s.startCrew()
	defer child.Serve(listener, s.handle)() // after the workers, who want to say that they leave
	defer child.StopAll(s.children)
	if err != nil {
		return err
	}
	if err := s.giveJobs(connect); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		return err
	}
	return s.conclude()
}

// startCrew starts all workers. They wait for their jobs, so that none has an advantage.
func (s *show) startCrew() error {
	var pids []string
	for worker := 1; worker <= s.cfg.workers; worker++ {
		p, err := child.Start(worker, s.stderr, func(p *child.Process) { s.ended <- p })
		if err != nil {
			return err
		}
		s.children = append(s.children, p)
		pids = append(pids, strconv.Itoa(p.PID()))
	}
	s.say.Line("Workers 1 to %d are the processes %s. All of them want the lock now.", s.cfg.workers, strings.Join(pids, ", "))
	return nil
}

func (s *show) giveJobs(connect string) error {
	for _, p := range s.children {
		j := job{p.Number, connect, s.path, s.cfg.session, s.url, s.cfg.increments}
		if err := p.SendJob(j); err != nil {
			return err
		}
	}
	return nil
}

// await waits until all workers have ended.
func (s *show) await() error {
	for range s.children {
		select {
		case p := <-s.ended:
			if err := p.Err(); err != nil {
				return fmt.Errorf("worker %d failed: %w", p.Number, err)
			}
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	return nil
}

// conclude checks what has to be true at the end, and tells it.
func (s *show) conclude() error {
	v := s.victim.Load()
	if v == nil {
		return errors.New("nobody got to be killed")
	}
	t, err := s.store.check(s.cfg.workers, s.cfg.increments, v.Worker)
	if err != nil {
		return err
	}
	if !s.refused.Load() {
		return errors.New("the dead worker's late write was not put to the test")
	}
	s.say.Text(`
The lock did what it promises:
  - no lost update: %d writes, and the record is %d;
  - never two at once: %d turns, one after the other;
  - every turn had a larger token than all before it, from %d to %d;
  - worker %d died with the lock; %.1f s later it passed on by itself (session timeout: %v);
  - the dead worker's late write, with token %d, was refused.`,
		t.writes, t.value, t.turns, t.first, t.newest, v.Worker, time.Duration(s.passedOn.Load()).Seconds(), s.agreed, v.Token)
	return nil
}

// cleanUp removes the lock's nodes from the servers, as far as possible: they delete empty containers themselves after some time.
func (s *show) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), child.Grace)
	defer cancel()
	nodes, _, err := s.client.Children(ctx, s.path) // left by workers that were killed
	for _, node := range nodes {
		err = errors.Join(err, s.client.Delete(ctx, s.path+"/"+node, -1))
	}
	err = errors.Join(err, s.client.Delete(ctx, s.path, -1))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		fmt.Fprintf(s.stderr, "could not remove %s: %v\n", s.path, err)
	}
	_ = s.client.Delete(ctx, folder, -1) // somebody else may be using it
}
