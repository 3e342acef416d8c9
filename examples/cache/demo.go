package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
)

// cleanUpTime is for how long the demonstration tries to delete its nodes.
const cleanUpTime = 10 * time.Second

// demo is one run of the demonstration.
type demo struct {
	report     *program.Reporter
	editor     *framework.Client // of the operator who changes the settings
	path       string
	settings   *settings
	killLeader func()
	refused    atomic.Int64 // how often they were not valid
}

// runDemo runs the whole demonstration. When it returns, the nodes and goroutines that it made have
// ended.
func runDemo(
	ctx context.Context, session time.Duration, connect string, killLeader func(), report *program.Reporter,
) (err error) {
	client, err := framework.New(connect, framework.WithSessionTimeout(session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	editor, err := framework.New(connect, framework.WithSessionTimeout(session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, editor.Close()) }()
	d := &demo{
		report: report, editor: editor, killLeader: killLeader,
		path: "/docent-examples/cache-" + rand.Text(), // random so that no other program has these settings
	}
	defer func() {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		err = errors.Join(err, editor.DeleteRecursive(deleting, d.path))
	}()
	for _, setting := range [][2]string{{"workers", "2"}, {"timeout", "1s"}} {
		if err := d.set(ctx, setting[0], setting[1]); err != nil {
			return err
		}
	}
	if d.settings, err = follow(client, d.path, d.told); err != nil {
		return err
	}
	defer d.settings.close()
	return d.run(ctx)
}

// told reports what has happened to the settings.
func (d *demo) told(what string, err error) {
	if err != nil {
		d.refused.Add(1)
		what = fmt.Sprintf("%s: %v", what, err)
	}
	d.report.Line("      %s", what)
}

// set creates or changes a setting. Nothing else does, so a request whose answer was lost is repeated.
func (d *demo) set(ctx context.Context, name, value string) error {
	for {
		_, err := d.editor.Create(ctx, d.path+"/"+name, []byte(value), framework.Parents(), framework.OrSet())
		if framework.OutcomeOf(err) != framework.Unknown || ctx.Err() != nil {
			return err
		}
	}
}

func (d *demo) run(ctx context.Context) error {
	first, err := d.settings.now(ctx)
	if err != nil {
		return err
	}
	d.report.Line("The program works with %v.", first)
	for _, part := range []func(context.Context) error{d.change, d.mistake, d.remove, d.elect} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.report.Text("\nThe program had valid settings all the time.")
	return nil
}

// change changes a setting.
func (d *demo) change(ctx context.Context) error {
	d.report.Line("CHANGED: the timeout is 2s now ...")
	if err := d.set(ctx, "timeout", "2s"); err != nil {
		return err
	}
	return d.works(ctx, values{2, 2 * time.Second})
}

// mistake sets a setting to nonsense, and mends that.
func (d *demo) mistake(ctx context.Context) error {
	d.report.Line("MISTAKE: the number of workers is a word ...")
	before := d.refused.Load()
	if err := d.set(ctx, "workers", "many"); err != nil {
		return err
	}
	noticed := func() bool { return d.refused.Load() > before }
	if err := program.Wait(ctx, "the mistake was not noticed", noticed); err != nil {
		return err
	}
	if err := d.works(ctx, values{2, 2 * time.Second}); err != nil {
		return err
	}
	if err := d.set(ctx, "workers", "3"); err != nil {
		return err
	}
	return d.works(ctx, values{3, 2 * time.Second})
}

// remove deletes a setting that has a default.
func (d *demo) remove(ctx context.Context) error {
	d.report.Line("DELETED: the timeout has its default again ...")
	if err := program.Delete(ctx, d.editor, d.path+"/timeout"); err != nil {
		return err
	}
	return d.works(ctx, values{3, defaultTimeout})
}

// elect kills the ZooKeeper leader, and changes a setting as soon as there is another one.
func (d *demo) elect(ctx context.Context) error {
	if d.killLeader == nil {
		d.report.Line("(The servers are not this program's: their leader stays.)")
		return nil
	}
	var stale atomic.Bool // has been: the cache may be current again before this goroutine asks it
	defer d.settings.cache.Listen(func(e cache.Event) {
		if e.Kind == cache.Stale {
			stale.Store(true)
		}
	})()
	d.killLeader()
	d.report.Line("ELECTION: the ZooKeeper leader is dead. Nothing can be read now ...")
	if err := program.Wait(ctx, "the settings are not stale", stale.Load); err != nil {
		return err
	}
	if err := d.works(ctx, values{3, defaultTimeout}); err != nil {
		return err
	}
	if err := d.set(ctx, "workers", "4"); err != nil {
		return err
	}
	if err := d.settings.cache.WaitReady(ctx); err != nil {
		return err
	}
	return d.works(ctx, values{4, defaultTimeout})
}

// works waits until the program works with the given settings.
func (d *demo) works(ctx context.Context, want values) error {
	var last values
	err := program.Wait(ctx, fmt.Sprintf("the program does not work with %v", want), func() bool {
		now, err := d.settings.now(ctx)
		last = now
		return err == nil && now == want
	})
	if err == nil {
		d.report.Line("... and the program works with %v.", last)
	}
	return err
}
