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

// demo is one run of the demonstration. It starts the processes, keeps the store, and kills two
// leaders.
type demo struct {
	config
	report   *program.Reporter
	fail     context.CancelCauseFunc // ends the demonstration
	client   *framework.Client
	folder   string
	start    time.Time
	store    store
	children *child.Group[job]

	before, after sync.Once               // the kills: before the effect of a tick, and after it
	late          atomic.Pointer[request] // the request that had not arrived when its sender died
	refused       atomic.Bool             // the late request was refused
	repeated      atomic.Bool             // a tick that had its effect was repeated
}

// The ticks during which leaders are killed.
func (c config) killBefore() int { return max(2, c.ticks/4) }
func (c config) killAfter() int  { return c.ticks * 2 / 3 }

func (d *demo) notePath() string { return d.folder + "/last-tick" }

// runDemo runs the whole demonstration. When it returns, all processes and goroutines that it
// started have ended.
func runDemo(ctx context.Context, connect string, cfg config, report *program.Reporter) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(cfg.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	d := &demo{
		config: cfg, report: report, fail: fail, client: client,
		// The path is random so that no other program takes part in the election.
		folder: "/docent-examples/singleton-cron-" + rand.Text(),
	}
	if err := d.writeFirstNote(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Delete(context.WithoutCancel(ctx), d.notePath(), -1)) }()

	listener, url, err := child.Listen()
	if err != nil {
		return err
	}
	defer child.Serve(listener, d.handle)()
	d.children = child.NewGroup(func(number int) job {
		return job{
			Number: number, Connect: connect, Election: d.folder + "/leader", Note: d.notePath(), Session: cfg.Session,
			Store: url, Start: d.start, Every: cfg.every, Ticks: cfg.ticks,
		}
	}, fail)
	defer func() { err = errors.Join(err, d.children.Stop()) }()
	return d.run(ctx)
}

// writeFirstNote notes that no tick has been run.
func (d *demo) writeFirstNote(ctx context.Context) error {
	data, err := json.Marshal(note{})
	if err != nil {
		return err
	}
	_, err = d.client.Create(ctx, d.notePath(), data, framework.Parents())
	return err
}

func (d *demo) run(ctx context.Context) error {
	d.report.Text("A job, %d ticks, one each %v, and %d processes that could run it. One of them does: the leader.\n",
		d.ticks, d.every, d.processes)
	d.start = time.Now()
	for number := 1; number <= d.processes; number++ {
		if err := d.startProcess(number); err != nil {
			return err
		}
	}
	if err := d.await(ctx); err != nil {
		return err
	}
	return d.conclude()
}

func (d *demo) startProcess(number int) error {
	if err := d.children.Start(number); err != nil {
		return err
	}
	d.report.Line("Started process %d (%d).", number, d.children.Process(number).PID())
	return nil
}

// await waits until the last tick has been noted.
func (d *demo) await(ctx context.Context) error {
	for {
		data, stat, changed, err := d.client.GetW(ctx, d.notePath())
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		var n note
		if err := json.Unmarshal(data, &n); err != nil {
			return err
		}
		if int(stat.Version) != n.Tick { // each write of the note adds 1 to its version
			return fmt.Errorf("the last note is of tick %d, and there were %d notes", n.Tick, stat.Version)
		}
		if n.Tick == d.ticks {
			return nil
		}
		select {
		case <-changed.Fired():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handle passes a request to the store and reports it. The kills and the late request also happen
// here.
func (d *demo) handle(_ string, q request) (answer, error) {
	const before = "before that has an effect: its request to the store is still on its way"
	if q.Tick == d.killBefore() && d.killOnce(&d.before, q, before) {
		d.late.Store(&q)
		return answer{}, errors.New("the sender is dead")
	}
	a, err := d.store.put(q)
	if err != nil {
		if !errors.Is(err, fence.ErrStale) {
			d.fail(err)
		}
		return a, err
	}
	d.show(q, a)
	if q.Tick == d.killAfter() {
		d.killOnce(&d.after, q, "after that has had its effect, and before it can note it")
	}
	if late := d.late.Swap(nil); late != nil {
		d.deliver(*late)
	}
	return a, nil
}

// killOnce kills the leader that sent q, and starts its process again. It does so only once for
// each value of once, and reports whether it did.
func (d *demo) killOnce(once *sync.Once, q request, when string) (killed bool) {
	once.Do(func() {
		killed = true
		d.children.Process(q.Process).Kill()
		d.report.Line("KILLED: %s runs tick %d, and dies (kill -9) %s.", q, q.Tick, when)
		d.report.Line("The servers wait for the session timeout. "+
			"Process %d is started again, at the end of the queue ...", q.Process)
		if err := d.startProcess(q.Process); err != nil {
			d.fail(err)
		}
	})
	return killed
}

func (d *demo) show(q request, a answer) {
	if a.Before {
		d.repeated.Store(true)
		d.report.Line("tick %3d: %s runs it, but the store has it already, from %s: nothing happens", q.Tick, q, a.By)
		return
	}
	delay := ""
	if late := time.Since(job{Start: d.start, Every: d.every}.due(q.Tick)); late > d.every/2 {
		delay = fmt.Sprintf(", %.1f s late", late.Seconds())
	}
	d.report.Line("tick %3d: %s runs it%s", q.Tick, q, delay)
}

// deliver gives the request of the dead leader to the store. The same happens if a leader is
// paused, right after it has checked its term, and goes on when another process leads.
func (d *demo) deliver(late request) {
	a, err := d.store.put(late)
	if !errors.Is(err, fence.ErrStale) {
		d.fail(fmt.Errorf("the late request of %s for tick %d was not refused: %+v, %w", late, late.Tick, a, err))
		return
	}
	d.refused.Store(true)
	d.report.Line("Too late, the request of %s for tick %d arrives. The store refuses it: %v", late, late.Tick, err)
}

// conclude checks what must be true at the end, and reports it.
func (d *demo) conclude() error {
	runs := d.store.all()
	switch {
	case len(runs) != d.ticks:
		return fmt.Errorf("%d ticks had an effect, not %d", len(runs), d.ticks)
	case !d.refused.Load():
		return errors.New("the dead leader's late request was not tested")
	case !d.repeated.Load():
		return errors.New("no tick was repeated")
	}
	d.report.Text("\nEach of the %d ticks had its effect exactly once:", len(runs))
	for first := 0; first < len(runs); {
		next := first + 1
		for next < len(runs) && runs[next].Token == runs[first].Token {
			next++
		}
		d.report.Text("  - ticks %d to %d by %s", first+1, next, runs[first])
		first = next
	}
	return nil
}
