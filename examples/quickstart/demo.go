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
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
)

// folder is the path below which each run creates its lock.
const folder = "/docent-quickstart"

// demo is one run of the demonstration.
type demo struct {
	cfg      config
	report   *reporter
	stderr   io.Writer
	ctx      context.Context // of the whole run
	fail     context.CancelCauseFunc
	client   *framework.Client
	path     string // of the lock
	lock     *mutex.Mutex
	agreed   time.Duration // the session timeout that the servers granted
	store    *store
	url      string      // of the store
	remote   remoteStore // the store through its URL, as the workers use it
	children []*child.Process
	ended    chan *child.Process

	// The state of kill.go.
	killed   atomic.Pointer[killedWorker] // nil until a worker has been killed
	killOnce sync.Once
	passOnce sync.Once
	passedOn atomic.Int64 // the time.Duration from the kill to the next holder
	lateOnce sync.Once
	refused  atomic.Bool // the late write was refused
}

// connectTimeout is how long the first connection may take.
const connectTimeout = 15 * time.Second

// runDemo runs the whole demonstration. When it returns, all processes and goroutines that it
// started have ended.
func runDemo(ctx context.Context, cfg config, report *reporter, stderr io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.limit, fmt.Errorf("it took longer than %v", cfg.limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &demo{cfg: cfg, report: report, stderr: stderr, ctx: ctx, fail: fail, store: newStore()}

	report.intro(cfg)
	connect, stop, err := startServer(cfg.connect, report)
	if err != nil {
		return reason(ctx, err)
	}
	defer stop()
	return reason(ctx, d.runOn(connect))
}

// reason returns err. If the run was ended early, the error begins with the cause.
func reason(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil || errors.Is(err, cause):
		return err
	case errors.Is(cause, errInterrupted):
		return cause // err does not matter after an interrupt
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func (d *demo) runOn(connect string) (err error) {
	d.client, err = framework.New(connect, framework.WithSessionTimeout(d.cfg.session))
	if err != nil {
		return usageError{fmt.Errorf("-connect: %w", err)}
	}
	defer func() { err = errors.Join(err, d.client.Close()) }()
	if err := d.prepare(); err != nil {
		return err
	}
	defer d.cleanUp()
	return d.run(connect)
}

// prepare makes the lock and waits for a session, as each worker will do.
func (d *demo) prepare() (err error) {
	d.path = folder + "/" + strings.ToLower(rand.Text())
	if d.lock, err = mutex.New(d.client, d.path); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.ctx, connectTimeout)
	defer cancel()
	if err := d.client.WaitConnected(ctx); err != nil {
		return err
	}
	session, err := d.client.Session(ctx)
	if err != nil {
		return err
	}
	d.agreed = session.Timeout()
	return nil
}

func (d *demo) run(connect string) error {
	listener, url, err := child.Listen()
	if err != nil {
		return err
	}
	d.url, d.remote = url, newRemoteStore(url)
	d.ended = make(chan *child.Process, d.cfg.workers)
	err = d.startWorkers()
	defer child.Serve(listener, d.handle)() // stops after the workers, which still report that they leave
	defer child.StopAll(d.children)
	if err != nil {
		return err
	}
	if err := d.giveJobs(connect); err != nil {
		return err
	}
	if err := d.await(); err != nil {
		return err
	}
	return d.conclude()
}

// startWorkers starts all workers. They wait for their jobs, so that none of them has an advantage.
func (d *demo) startWorkers() error {
	var pids []string
	for worker := 1; worker <= d.cfg.workers; worker++ {
		p, err := child.Start(worker, d.stderr, func(p *child.Process) { d.ended <- p })
		if err != nil {
			return err
		}
		d.children = append(d.children, p)
		pids = append(pids, strconv.Itoa(p.PID()))
	}
	d.report.Line("Workers 1 to %d are the processes %s. All of them want the lock now.",
		d.cfg.workers, strings.Join(pids, ", "))
	return nil
}

func (d *demo) giveJobs(connect string) error {
	for _, p := range d.children {
		j := job{p.Number, connect, d.path, d.cfg.session, d.url, d.cfg.increments}
		if err := p.SendJob(j); err != nil {
			return err
		}
	}
	return nil
}

// await waits until all workers have ended.
func (d *demo) await() error {
	for range d.children {
		select {
		case p := <-d.ended:
			if err := p.Err(); err != nil {
				return fmt.Errorf("worker %d failed: %w", p.Number, err)
			}
		case <-d.ctx.Done():
			return context.Cause(d.ctx)
		}
	}
	return nil
}

// conclude checks what must be true at the end, and reports it.
func (d *demo) conclude() error {
	killed := d.killed.Load()
	if killed == nil {
		return errors.New("no worker was killed")
	}
	t, err := d.store.conclude(d.cfg.workers, d.cfg.increments, killed.Worker)
	if err != nil {
		return err
	}
	if !d.refused.Load() {
		return errors.New("the dead worker's late write was not tested")
	}
	d.report.Text(`
The lock did what it promises:
  - no lost update: %d writes, and the record is %d;
  - never two at once: %d turns, one after the other;
  - every turn had a larger token than all before it, from %d to %d;
  - worker %d died with the lock; %.1f s later it passed on by itself (session timeout: %v);
  - the dead worker's late write, with token %d, was refused.`,
		t.writes, t.value, t.turns, t.first, t.newest,
		killed.Worker, time.Duration(d.passedOn.Load()).Seconds(), d.agreed, killed.Token)
	return nil
}

// cleanUp deletes the lock's nodes. If that fails, the servers delete the empty containers after
// some time.
func (d *demo) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), child.Grace)
	defer cancel()
	err := d.client.DeleteRecursive(ctx, d.path) // with the nodes of workers that were killed
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		fmt.Fprintf(d.stderr, "could not remove %s: %v\n", d.path, err)
	}
	_ = program.Delete(ctx, d.client, folder) // fails if another run uses it
}
