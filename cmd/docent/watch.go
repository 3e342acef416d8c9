package main

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "print each change of the holders and waiters of a lock",
		UsageText: "docent watch [options] PATH",
		Description: text(`
			docent watch prints a line for PATH as it is, and one after each change, until it is interrupted. PATH need
			not exist. Changes that follow each other faster than docent can read are one line.

			docent goes on through lost connections and sessions, and says on standard error when it is cut off. What
			changed meanwhile is one line. It needs servers of version 3.6 or later. PATH should be one lock: below a
			directory of many, docent reads PATH again for each change of any of them.

			Examples:
			  docent watch /locks/orders
			  docent watch -o json /service/leader | jq -r '.nodes[]? | select(.holds) | .host'

`) + exitCodesOfReads,
		Flags:  []cli.Flag{outputFlag()},
		Action: atPath(watch),
	}
}

// watch carries out docent watch.
func watch(ctx context.Context, client *framework.Client, path string, out output) error {
	defer client.Listen(func(change framework.StateChange) {
		if change.State != framework.Connected {
			out.say("at " + timeText(change.At) + " the connection is " + change.State.String())
		}
	})()
	table := out.table("AT", "STATE", "HOLDERS", "WAITERS", "HOLDER", "SESSION")
	return (&watching{client: client, path: path, table: table}).follow(ctx)
}

// watching prints what changes at a path.
type watching struct {
	client *framework.Client
	path   string
	table  *table
	last   *inspect.Object // as it was printed; nil: nothing was
	gone   bool            // there was no node then
}

// follow prints the object after each change until ctx ends.
func (w *watching) follow(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	events, err := w.client.AddWatch(ctx, w.path, framework.WatchTree, func(framework.WatchEvent) {
		select {
		case changed <- struct{}{}:
		default: // the next read shows this change, too
		}
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-changed:
		case <-events.Done():
			return events.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.look(ctx); err != nil {
			return err
		}
	}
}

// look prints the object if it has changed. It waits until there is a connection.
func (w *watching) look(ctx context.Context) error {
	o, err := inspect.Show(ctx, w.client, w.path)
	for w.client.Outlast(ctx, err) {
		o, err = inspect.Show(ctx, w.client, w.path)
	}
	gone := errors.Is(err, zk.ErrNoNode)
	switch {
	case gone:
		o = &inspect.Object{Path: w.path, Kind: inspect.KindEmpty, State: inspect.StateFree, At: time.Now()}
	case err != nil:
		return err
	}
	now := *o
	now.At = time.Time{}
	if w.last != nil && w.gone == gone && reflect.DeepEqual(*w.last, now) {
		return nil
	}
	w.last, w.gone = &now, gone
	return w.print(o, gone)
}

func (w *watching) print(o *inspect.Object, gone bool) error {
	v := viewOf(o)
	v.Missing = gone
	state, session := stateText(o), ""
	if gone {
		state += " (no node)"
	}
	for _, n := range o.Nodes {
		if n.Holds && session == "" {
			session = sessionText(n)
		}
	}
	err := w.table.row(v, o.At.UTC().Format("2006-01-02T15:04:05.000Z"), state, holdersText(o), strconv.Itoa(o.Waiters),
		clientsText(o), session)
	return errors.Join(err, w.table.flush())
}
