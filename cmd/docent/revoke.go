package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
)

func revokeCommand() *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "ask the holders of a lock to release it",
		UsageText: "docent revoke [options] PATH [NODE]",
		Description: text(`
			docent revoke asks all holders of PATH to release it, or the client of NODE alone, which may also wait. NODE
			is a name as docent show prints it. docent revoke returns when the request is written.

			Whether and when a client releases the lock is up to its program: docent's looks at Hold.Revoked, Curator's
			has a listener of makeRevocable. docent lock and docent elect tell their command to end: see --on-revoke
			there. kazoo does not look. docent watch PATH shows what happens.

			The request replaces the data of the node, and so what it said about its client: docent revoke prints that
			for the last time. An election of a LeaderLatch cannot be asked.

			Examples:
			  docent revoke /locks/orders
			  docent revoke /locks/index __READ__0000000007

`) + exitCodesOfReads,
		Flags:  []cli.Flag{outputFlag()},
		Action: revoke,
	}
}

// revoke carries out docent revoke.
func revoke(ctx context.Context, c *cli.Command) error {
	path, name, err := pathAndNode(c)
	if err != nil {
		return err
	}
	out, err := outputOf(c)
	if err != nil {
		return err
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		o, nodes, err := choose(ctx, client, path, name)
		if err != nil {
			return err
		}
		t := out.table("ASKED", "SINCE", "SESSION", "TOKEN", "NODE")
		var failed error
		asked := 0
		for _, n := range nodes {
			err := recipes.Revoke(ctx, client, n.Participant())
			if errors.Is(err, zk.ErrNoNode) {
				out.say(n.Path + ": the client has released it meanwhile")
				continue
			}
			failed = errors.Join(failed, err)
			switch {
			case framework.OutcomeOf(err) == framework.NotApplied:
				continue // the other clients are asked all the same
			case n.Layout == inspect.LayoutKazoo:
				out.say(shortNameOf(n) + ": kazoo does not look at requests: see docent break")
			}
			asked++
			if err := t.row(oneNode{path, nodeViewOf(o, n)}, clientText(n), timeText(n.Since), sessionText(n),
				tokenText(n.Token), shortNameOf(n)); err != nil {
				return errors.Join(failed, err)
			}
		}
		if asked == 0 {
			return failed // without headings
		}
		return errors.Join(failed, t.flush())
	})
}

// oneNode is a node that was revoked or deleted, in JSON.
type oneNode struct {
	Path string   `json:"path"` // of the lock
	Node nodeView `json:"node"`
}

// pathAndNode returns the path of a lock, and the name or path of a node of it, or "" if there is no
// such argument. One that is empty, such as a variable that is not set, is an error.
func pathAndNode(c *cli.Command) (path, name string, err error) {
	if n := c.Args().Len(); n < 1 || n > 2 {
		return "", "", usagef("want one path, and perhaps the name of a node: see %s --help", c.FullName())
	}
	path, name = c.Args().First(), c.Args().Get(1)
	if err := framework.CheckPath(path); err != nil {
		return "", "", usageError{err}
	}
	if c.Args().Len() == 2 && name == "" {
		return "", "", usagef("the name of the node of %s is empty", path)
	}
	return path, name, nil
}

// mostOfALock is how many nodes of a lock can be chosen from.
const mostOfALock = 100_000

// choose returns the lock at a path and its node with a name, whole or short, or with a path. Without a
// name it returns all nodes that hold the lock.
func choose(
	ctx context.Context, client *framework.Client, path, name string,
) (o *inspect.Object, chosen []inspect.Node, err error) {
	o, err = inspect.Show(ctx, client, path, inspect.WithMaxNodes(mostOfALock))
	if err != nil {
		return nil, nil, missing(path, err)
	}
	switch lock := lockOf(path); {
	case isLock(o) || lock == "" && o.Kind == inspect.KindEmpty:
	case lock != "":
		return nil, nil, usagef("%s is a node of a lock: give both, as %s %s", path, lock, nodeName(path))
	default:
		return nil, nil, usagef("%s: want a lock, a semaphore or an election: this is of the kind %s", path, o.Kind)
	}
	for _, n := range o.Nodes {
		if name == "" && n.Holds || name == nameOf(n) || name == shortNameOf(n) || name == n.Path {
			chosen = append(chosen, n)
		}
	}
	switch {
	case name != "" && len(chosen) > 1:
		return nil, nil, usagef("%s: %d nodes have the name %s: give a whole name", path, len(chosen), name)
	case len(chosen) > 0:
		return o, chosen, nil
	case name != "":
		return nil, nil, coded{fmt.Errorf("%s: there is no node %s", path, name), exitNoNode}
	}
	return nil, nil, coded{fmt.Errorf("%s: no client holds it", path), exitNoNode}
}
