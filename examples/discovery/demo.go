package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
)

const (
	instances = 3  // the number of instances
	callers   = 4  // the number of goroutines that send requests
	some      = 50 // answers show that the service works
)

// demo is one run of the demonstration.
type demo struct {
	report     *program.Reporter
	view       *discovery.View
	caller     *caller
	children   *child.Group[job]
	killLeader func()
	outages    atomic.Int64 // how often the view was stale
}

// runDemo runs the whole demonstration. When it returns, all processes and goroutines that it
// started have ended.
func runDemo(
	ctx context.Context, cfg config, connect string, killLeader func(), report *program.Reporter,
) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(cfg.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	path := "/docent-examples/discovery-" + rand.Text() // random so that no other program uses this registry
	registry, err := discovery.New(client, path)
	if err != nil {
		return err
	}
	view, err := registry.View(service)
	if err != nil {
		return err
	}
	defer view.Close()
	provider, err := discovery.NewProvider(view, discovery.WithFailures(1, cfg.Session))
	if err != nil {
		return err
	}
	d := &demo{report: report, view: view, caller: newCaller(provider, cfg.patience), killLeader: killLeader}
	d.children = child.NewGroup(func(number int) job { return job{number, connect, path, cfg.Session} }, fail)
	defer func() { err = errors.Join(err, d.children.Stop()) }()
	view.Listen(func(e discovery.Event) {
		if ctx.Err() == nil {
			d.observe(e)
		}
	})
	var calling sync.WaitGroup
	defer func() { fail(nil); calling.Wait() }()
	for range callers {
		calling.Go(func() {
			if err := d.caller.run(ctx); err != nil {
				fail(err)
			}
		})
	}
	return d.run(ctx)
}

// observe reports what the view shows.
func (d *demo) observe(e discovery.Event) {
	switch e.Kind {
	case discovery.Added:
		d.report.Line("      listed: instance %s at %s", e.New.Payload, e.New.HostPort())
	case discovery.Removed:
		d.report.Line("      not listed any more: instance %s at %s", e.Old.Payload, e.Old.HostPort())
	case discovery.Stale:
		d.outages.Add(1)
		d.report.Line("      the view is stale")
	case discovery.Ready:
		d.report.Line("      the view is current")
	}
}

func (d *demo) run(ctx context.Context) error {
	d.report.Text("%d instances, each a process of its own, and %d goroutines that send requests.\n",
		instances, callers)
	for number := 1; number <= instances; number++ {
		if err := d.start(ctx, number); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{d.kill, d.restart, d.elect} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	answered, repeated := d.caller.total()
	d.report.Text("\nNo request was lost: %d were answered, and %d attempts were repeated.", answered, repeated)
	return nil
}

// start starts an instance, and waits until it answers.
func (d *demo) start(ctx context.Context, number int) error {
	before := d.caller.answers(number)
	if err := d.children.Start(number); err != nil {
		return err
	}
	d.report.Line("Process %d is instance %d.", d.children.Process(number).PID(), number)
	return program.Wait(ctx, fmt.Sprintf("instance %d does not answer", number), func() bool {
		return d.caller.answers(number) > before
	})
}

// kill kills an instance. It is listed until its session ends. Until then the provider leaves it
// out because it fails.
func (d *demo) kill(ctx context.Context) error {
	d.children.Process(1).Kill()
	begun := time.Now()
	d.report.Line("KILLED: instance 1 is dead (kill -9). Requests to it fail, and are repeated elsewhere ...")
	if err := d.answer(ctx); err != nil {
		return err
	}
	d.report.Line("... and %.2f s later %d more are answered. The servers end its session ...",
		time.Since(begun).Seconds(), some)
	if err := d.list(ctx, instances-1); err != nil {
		return err
	}
	d.report.Line("... %.2f s after its death.", time.Since(begun).Seconds())
	return d.start(ctx, 1)
}

// restart stops an instance, which unregisters itself first, and starts it again.
func (d *demo) restart(ctx context.Context) error {
	d.report.Line("RESTARTED: instance 2 unregisters itself, answers the requests that have begun, and ends ...")
	if err := d.children.Process(2).Stop(); err != nil {
		return err
	}
	if err := d.list(ctx, instances-1); err != nil {
		return err
	}
	if err := d.answer(ctx); err != nil {
		return err
	}
	return d.start(ctx, 2)
}

// elect kills the ZooKeeper leader. Until another server is elected there is no connection. The
// provider picks from what the view has, and the instances stay registered.
func (d *demo) elect(ctx context.Context) error {
	if d.killLeader == nil {
		d.report.Line("(The servers are not this program's: their leader stays.)")
		return nil
	}
	if err := d.list(ctx, instances); err != nil {
		return err
	}
	before := d.outages.Load()
	if err := d.view.WaitReady(ctx); err != nil {
		return err
	}
	d.killLeader()
	d.report.Line("ELECTION: the ZooKeeper leader is dead. Nothing can be read or registered now ...")
	if err := program.Wait(ctx, "the view is not stale", func() bool { return d.outages.Load() > before }); err != nil {
		return err
	}
	if err := d.answer(ctx); err != nil {
		return err
	}
	if err := d.view.WaitReady(ctx); err != nil {
		return err
	}
	if err := d.list(ctx, instances); err != nil {
		return err
	}
	d.report.Line("... and meanwhile %d more requests were answered.", some)
	return nil
}

// answer waits for some answers.
func (d *demo) answer(ctx context.Context) error {
	before, _ := d.caller.total()
	return program.Wait(ctx, "requests are not answered", func() bool {
		now, _ := d.caller.total()
		return now >= before+some
	})
}

// list waits until the view has the given number of instances.
func (d *demo) list(ctx context.Context, want int) error {
	return program.Wait(ctx, fmt.Sprintf("not %d instances are listed", want), func() bool {
		return len(d.view.Instances()) == want
	})
}
