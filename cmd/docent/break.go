package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

func breakCommand() *cli.Command {
	return &cli.Command{
		Name:      "break",
		Usage:     "delete the node of a holder that does not release its lock",
		UsageText: "docent break [options] PATH [NODE]",
		Description: text(`
			docent break shows the node by which a client holds PATH, asks on the terminal, and deletes exactly that
			node, even if another client holds the lock by then. With NODE it is that one, which may also wait. NODE
			is needed if several nodes hold PATH. NODE is a name as docent show prints it.

			The next waiter has the lock at once, and the former holder works on until it notices. docent's clients
			notice within a round trip as a rule, or in the next Guard or Release: ErrNodeDeleted. docent lock kills
			its command then. Clients of Curator and kazoo never notice. If you can, stop the former holder first, or
			let the resource refuse its fencing token, which docent break prints.

			docent revoke asks the holder instead.

			Examples:
			  docent break /locks/orders
			  docent break --yes /locks/orders       # in scripts: no question
			  docent break /locks/index __READ__0000000007

`) + exitCodesOfReads,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Usage: "do not ask; needed without a terminal"},
			outputFlag(),
		},
		Action: breakLock,
	}
}

// breakLock carries out docent break.
func breakLock(ctx context.Context, c *cli.Command) error {
	path, name, err := pathAndNode(c)
	if err != nil {
		return err
	}
	out, err := outputOf(c)
	if err != nil {
		return err
	}
	var tty *os.File
	if !c.Bool("yes") {
		if tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			return usagef("there is no terminal to ask on: give --yes to delete the node without a question")
		}
		defer func() { _ = tty.Close() }()
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		o, nodes, err := choose(ctx, client, path, name)
		if err != nil {
			return err
		}
		n := nodes[0]
		switch {
		case len(nodes) > 1:
			return usagef("%s: %d nodes hold it: name one that docent show %[1]s prints", path, len(nodes))
		case n.Token == 0:
			return fmt.Errorf("%s: %s", n.Path, n.Err)
		}
		if tty != nil {
			if err := confirm(ctx, tty, o, n); err != nil {
				return err
			}
		}
		token, err := inspect.Break(ctx, client, n)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return coded{fmt.Errorf("%s: the node is there no more, and nothing was deleted", n.Path), exitNoNode}
		case err != nil:
			return err
		case out.json:
			return out.object(oneNode{path, nodeViewOf(o, n)})
		}
		return out.describe("",
			property{"deleted", n.Path},
			property{"of", clientText(n)},
			property{"session", sessionText(n)},
			property{"token", tokenText(token) + ": resources must refuse it from now on"},
		)
	})
}

// confirm asks on a terminal whether to delete a node. It returns an error if not.
func confirm(ctx context.Context, tty *os.File, o *inspect.Object, n inspect.Node) error {
	stop := context.AfterFunc(ctx, func() { _ = tty.SetDeadline(time.Unix(0, 0)) }) // a signal ends the question
	defer stop()
	if err := ask(tty, o, n); err != nil {
		return err
	}
	answer, err := bufio.NewReader(tty).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case strings.TrimSpace(answer) != "yes":
		return errors.New("nothing was deleted: the answer was not yes")
	}
	return nil
}

// ask prints what is about to be deleted, and what follows.
func ask(tty *os.File, o *inspect.Object, n inspect.Node) error {
	out := output{Writer: tty}
	holds, follows := "holds", "No client waits."
	if !n.Holds {
		holds, follows = "waits for", "A client of docent queues again at the end."
	} else if next := firstWaiter(o); next != nil {
		follows = "The lock passes on at once. First in the queue is " + printable(clientText(*next)) + "."
	}
	_, err := fmt.Fprintf(out, "The client of this node %s %s (%s):\n\n", holds, o.Path, o.Kind)
	if err == nil {
		err = out.describe("  ", append([]property{{"client", clientText(n)}}, body(o, n)...)...)
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "\nIt is not asked, and works on until it notices. docent notices soon. "+
			"Curator and kazoo never do.\n%s Type yes to delete the node: ", follows)
	}
	return err
}

// firstWaiter returns the first node that waits, or nil.
func firstWaiter(o *inspect.Object) *inspect.Node {
	for i, n := range o.Nodes {
		if !n.Holds {
			return &o.Nodes[i]
		}
	}
	return nil
}
