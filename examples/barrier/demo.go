package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
)

const (
	workers = 3
	rounds  = 20
)

// demo is one run of the demonstration.
type demo struct {
	barriers
	client   *framework.Client
	path     string
	report   *program.Reporter
	children *child.Group[job]
	again    bool // workers that are started take the place of others
}

// runDemo runs the whole demonstration. When it returns, all processes that it started have ended.
func runDemo(ctx context.Context, cfg config, connect string, report *program.Reporter) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(cfg.session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	path := "/docent-examples/barrier-" + rand.Text() // random so that no other program uses it
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), child.Grace)
		defer cancel()
		if gone := client.DeleteRecursive(clean, path); !errors.Is(gone, zk.ErrNoNode) {
			err = errors.Join(err, gone)
		}
	}()
	b, err := newBarriers(client, path)
	if err != nil {
		return err
	}
	d := &demo{barriers: b, client: client, path: path, report: report}
	d.children = child.NewGroup(func(number int) job {
		return job{number, connect, path, cfg.session, d.again}
	}, fail)
	defer func() { err = errors.Join(err, d.children.Stop()) }()
	for _, part := range []func(context.Context) error{d.begin, d.work, d.goThroughRounds} {
		if err := part(ctx); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}

// begin starts the workers, which wait at the gate. One is killed there. The latch opens when each
// has loaded, also the one that takes its place.
func (d *demo) begin(ctx context.Context) error {
	for _, gate := range []interface{ Set(context.Context) error }{d.gate, d.stop} {
		if err := gate.Set(ctx); err != nil {
			return err
		}
	}
	for number := 1; number <= workers; number++ {
		if err := d.start(number); err != nil {
			return err
		}
	}
	d.children.Process(1).Kill()
	d.report.Line("KILLED: worker 1 is dead (kill -9). It has not loaded, and the latch waits for another one.")
	if err := d.start(1); err != nil {
		return err
	}
	if err := d.gate.Remove(ctx); err != nil {
		return err
	}
	d.report.Line("The gate is open.")
	if err := d.loaded.Wait(ctx); err != nil {
		return err
	}
	d.report.Line("All %d workers have loaded.", workers)
	return nil
}

func (d *demo) start(number int) error {
	if err := d.children.Start(number); err != nil {
		return err
	}
	d.report.Line("Process %d is worker %d.", d.children.Process(number).PID(), number)
	return nil
}

// work waits until the workers are inside the double barrier, and kills one of them there. The
// others leave when its session has ended.
func (d *demo) work(ctx context.Context) error {
	if err := d.awaitNode(ctx, d.path+"/work/ready"); err != nil {
		return err
	}
	d.report.Line("All are inside, and work.")
	d.children.Process(2).Kill()
	begun := time.Now()
	d.report.Line("KILLED: worker 2 is dead. The others wait for it until the servers end its session ...")
	if err := d.stop.Remove(ctx); err != nil {
		return err
	}
	var began, left time.Time // the last that has begun, the first that has left
	for _, number := range []int{1, 3} {
		b, l, err := d.readReport(ctx, number)
		if err != nil {
			return err
		}
		if b.After(began) {
			began = b
		}
		if left.IsZero() || l.Before(left) {
			left = l
		}
	}
	if left.Before(began) {
		return fmt.Errorf("AHEAD: a worker has left %v before another one has entered", began.Sub(left))
	}
	d.report.Line("... and have left %.2f s after its death.", time.Since(begun).Seconds())
	return nil
}

// awaitNode waits until a node exists.
func (d *demo) awaitNode(ctx context.Context, path string) error {
	for {
		stat, watch, err := d.client.ExistsW(ctx, path)
		switch {
		case d.client.Outlast(ctx, err):
			continue
		case err != nil || stat != nil:
			return err
		}
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *demo) readReport(ctx context.Context, number int) (began, left time.Time, err error) {
	path := fmt.Sprintf("%s/reports/%d", d.path, number)
	if err := d.awaitNode(ctx, path); err != nil {
		return began, left, err
	}
	data, _, err := d.client.Get(ctx, path)
	if err != nil {
		return began, left, err
	}
	var b, l int64
	_, err = fmt.Sscan(string(data), &b, &l)
	return time.Unix(0, b), time.Unix(0, l), err
}

// goThroughRounds waits until the workers, and one in the place of the dead, have gone through all
// rounds.
func (d *demo) goThroughRounds(ctx context.Context) error {
	d.again = true
	if err := d.start(2); err != nil {
		return err
	}
	if err := d.done.Wait(ctx); err != nil {
		return err
	}
	d.report.Text("\nNo worker was ahead of the others: %d rounds in step.", rounds)
	return nil
}
