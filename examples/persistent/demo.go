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

// address is the address of the server.
const address = "10.0.0.3:8080"

// demo is one run of the demonstration.
type demo struct {
	report     *program.Reporter
	client     *framework.Client // which looks at the node
	path       string            // of the node
	session    time.Duration
	children   *child.Group[job]
	killLeader func()
}

// runDemo runs the whole demonstration. When it returns, all processes and goroutines that it
// started have ended.
func runDemo(
	ctx context.Context, session time.Duration, connect string, killLeader func(), report *program.Reporter,
) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	d := &demo{
		report: report, client: client, session: session, killLeader: killLeader,
		path: "/docent-examples/persistent-" + rand.Text(), // random so that no other program has this node
	}
	d.children = child.NewGroup(func(int) job { return job{connect, d.path, address, session} }, fail)
	defer func() { err = errors.Join(err, d.children.Stop()) }()
	return d.run(ctx)
}

func (d *demo) run(ctx context.Context) error {
	if err := d.children.Start(1); err != nil {
		return err
	}
	d.report.Line("Process %d is the server.", d.children.Process(1).PID())
	stat, err := d.registered(ctx, "the server is not registered", func(*zk.Stat) bool { return true })
	if err != nil {
		return err
	}
	d.report.Line("It is registered at %s, in session %#x.", d.path, stat.EphemeralOwner)
	for _, part := range []func(context.Context, *zk.Stat) (*zk.Stat, error){d.mistake, d.elect, d.pause} {
		if stat, err = part(ctx, stat); err != nil {
			return err
		}
	}
	return d.stop(ctx)
}

// mistake deletes the node. The server notices, and creates it again.
func (d *demo) mistake(ctx context.Context, before *zk.Stat) (*zk.Stat, error) {
	begun := time.Now()
	if err := program.Delete(ctx, d.client, d.path); err != nil {
		return nil, err
	}
	d.report.Line("DELETED: an operator has deleted the node ...")
	now, err := d.registered(ctx, "the node did not come back", func(now *zk.Stat) bool {
		return now.Czxid != before.Czxid
	})
	if err == nil {
		d.report.Line("... and %.2f s later it is there again.", time.Since(begun).Seconds())
	}
	return now, err
}

// elect kills the ZooKeeper leader. The session goes on, and so the node is not touched.
func (d *demo) elect(ctx context.Context, before *zk.Stat) (*zk.Stat, error) {
	if d.killLeader == nil {
		d.report.Line("(The servers are not this program's: their leader stays.)")
		return before, nil
	}
	d.killLeader()
	d.report.Line("ELECTION: the ZooKeeper leader is dead ...")
	now, err := d.registered(ctx, "the node is lost", func(*zk.Stat) bool { return true })
	if err != nil {
		return nil, err
	}
	if now.Czxid != before.Czxid {
		return nil, errors.New("the node was created again, although its session lives")
	}
	d.report.Line("... and the node has stayed as it was.")
	return now, nil
}

// pause pauses the server until its session has expired. When it goes on, it has another session, and
// registers itself in that.
func (d *demo) pause(ctx context.Context, before *zk.Stat) (*zk.Stat, error) {
	if !child.CanPause {
		d.report.Line("(Processes cannot be paused on this system.)")
		return before, nil
	}
	server := d.children.Process(1)
	if err := server.Pause(); err != nil {
		return nil, err
	}
	d.report.Line("PAUSED: the server is suspended (kill -STOP), as by a machine that is overloaded ...")
	if err := d.gone(ctx, "the session of the server does not expire"); err != nil {
		return nil, err
	}
	d.report.Line("... its session has expired, and the servers have deleted the node. It goes on ...")
	if err := server.Resume(); err != nil {
		return nil, err
	}
	now, err := d.registered(ctx, "the node did not come back", func(now *zk.Stat) bool {
		return now.EphemeralOwner != before.EphemeralOwner
	})
	if err == nil {
		d.report.Line("... and is registered again, in session %#x.", now.EphemeralOwner)
	}
	return now, err
}

// stop stops the server, which deletes its node. Nothing brings it back.
func (d *demo) stop(ctx context.Context) error {
	begun := time.Now()
	d.report.Line("STOPPED: the server ends, and deletes its node ...")
	if err := d.children.Process(1).Stop(); err != nil {
		return err
	}
	if err := d.gone(ctx, "the node is there after its server"); err != nil {
		return err
	}
	d.report.Line("... which is not there %.2f s later. The session has not expired, but was closed.",
		time.Since(begun).Seconds())
	d.report.Text("\nThe node was there while the server was.")
	return nil
}

// registered waits until the node is there as it should be, and returns its Stat.
func (d *demo) registered(ctx context.Context, missing string, ok func(*zk.Stat) bool) (now *zk.Stat, err error) {
	err = d.watch(ctx, missing, func(stat *zk.Stat) bool { now = stat; return stat != nil && ok(stat) })
	return now, err
}

// gone waits until the node is not there.
func (d *demo) gone(ctx context.Context, missing string) error {
	return d.watch(ctx, missing, func(stat *zk.Stat) bool { return stat == nil })
}

// watch reads the node whenever it has changed, until done returns true.
func (d *demo) watch(ctx context.Context, missing string, done func(*zk.Stat) bool) error {
	for {
		stat, watch, err := d.client.ExistsW(ctx, d.path)
		switch {
		case err != nil && !d.client.Outlast(ctx, err):
			return fmt.Errorf("%s: %w", missing, err)
		case err != nil:
			continue
		case done(stat):
			return nil
		}
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
		}
	}
}
