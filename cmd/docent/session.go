package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

func sessionCommand() *cli.Command {
	return &cli.Command{
		Name:      "session",
		Usage:     "show what a session holds and waits for, or sessions that wait for each other",
		UsageText: "docent session [options] ID ROOT\ndocent session --cycles [options] ROOT",
		Description: text(`
			docent session prints the locks at and below ROOT that a session holds or waits for, and the groups of which
			it is a member. ID is the id as servers and other commands of docent print it, such as 0x10000a2b3c40001, or
			in decimal. Servers do not tell what a session has, so docent reads all that is below ROOT.

			With --cycles it prints sessions each of which waits for the next one, and the last one for the first: a
			deadlock, if a session stands for one thread of work. It reads each cycle twice, and prints it only if
			nothing had changed. To end a deadlock, revoke or break one of its locks.

			Examples:
			  docent session 0x10000a2b3c40001 /
			  docent session --cycles /locks

`) + exitCodesOfReads,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "cycles", Usage: "print sessions that wait for each other"},
			outputFlag(),
		},
		Action: sessionOrCycles,
	}
}

// sessionOrCycles carries out docent session.
func sessionOrCycles(ctx context.Context, c *cli.Command) error {
	if c.Bool("cycles") {
		return atPath(cycles)(ctx, c)
	}
	out, err := outputOf(c)
	if err != nil {
		return err
	}
	if c.Args().Len() != 2 {
		return usagef("want the id of a session and a path: see %s --help", c.FullName())
	}
	id, err := inspect.ParseID(c.Args().First())
	if err != nil {
		return usageError{err}
	}
	root := c.Args().Get(1)
	if err := framework.CheckPath(root); err != nil {
		return usageError{err}
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		view, err := inspect.Session(ctx, client, root, id)
		if err != nil {
			return missing(root, err)
		}
		return printSession(view, root, out)
	})
}

// printSession prints what a session has below root.
func printSession(view *inspect.SessionView, root string, out output) error {
	if view.Unread > 0 {
		out.say(fmt.Sprintf("%d nodes could not be read, and may be of the session", view.Unread))
	}
	if out.json {
		for _, places := range [][]inspect.Place{view.Holds, view.Waits, view.Members} {
			for i := range places {
				toUTC(&places[i].Node)
			}
		}
		return out.object(view)
	}
	if len(view.Holds)+len(view.Waits)+len(view.Members) == 0 {
		out.say(fmt.Sprintf("session %v has nothing at and below %s", view.Session, root))
		return nil
	}
	t := out.table("STATE", "PATH", "ROLE", "AHEAD", "SINCE", "CLIENT", "NODE")
	for _, some := range []struct {
		what   string
		places []inspect.Place
	}{{"holds", view.Holds}, {"waits", view.Waits}, {"member", view.Members}} {
		for _, p := range some.places {
			if err := t.row(nil, some.what, p.Path, string(p.Node.Role), strconv.Itoa(p.Node.Ahead),
				timeText(p.Node.Since), clientText(p.Node), shortNameOf(p.Node)); err != nil {
				return err
			}
		}
	}
	return t.flush()
}

// cycleView is a cycle in JSON.
type cycleView struct {
	Cycle inspect.Cycle `json:"cycle"`
}

// cycles prints the sessions at and below root that wait for each other.
func cycles(ctx context.Context, client *framework.Client, root string, out output) error {
	var refused error
	var waited []*inspect.Object // the others are part of no cycle
	for o, err := range inspect.Walk(ctx, client, root) {
		switch {
		case o == nil:
			return missing(root, err)
		case err != nil:
			out.say(err.Error())
			refused = errUnread
		case o.Waiters > 0:
			waited = append(waited, o)
		}
	}
	t := out.table("CYCLE", "SESSION", "CLIENT", "WAITS FOR", "SINCE", "BEHIND")
	found := 0
	for _, cycle := range inspect.Cycles(waited) {
		there, err := inspect.Confirm(ctx, client, cycle)
		if err != nil {
			return errors.Join(err, t.flush())
		}
		if !there {
			continue
		}
		found++
		for i := range cycle {
			toUTC(&cycle[i].Waits)
			toUTC(&cycle[i].Behind)
		}
		if out.json {
			if err := out.object(cycleView{cycle}); err != nil {
				return err
			}
			continue
		}
		for _, step := range cycle {
			if err := t.row(nil, strconv.Itoa(found), step.Session.String(), clientText(step.Waits), step.Path,
				timeText(step.Waits.Since), step.Behind.Session.String()); err != nil {
				return err
			}
		}
	}
	if found == 0 {
		out.say("no sessions at and below " + root + " wait for each other")
		return refused
	}
	return errors.Join(refused, t.flush())
}
