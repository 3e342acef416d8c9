package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

func showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show the holders and the queue of a lock, or all of another object",
		UsageText: "docent show [options] PATH",
		Description: text(`
			docent show prints which clients hold PATH, since when, on which hosts and in which sessions, and the
			queue. It only reads. All nodes that it prints were there together, unless it says that they are torn.

			Host, process and process id are known of docent with WithIdentity and of docent lock. Clients of Curator
			and kazoo leave an address or nothing: their sessions are in the servers' logs and in the answer to the
			command "cons". A holder whose process has crashed is shown until its session expires.

			Times are those of the servers' clock, and ages the difference to that of this machine.

			Examples:
			  docent show /locks/orders
			  docent show -o json /locks/orders | jq -r '.nodes[] | select(.holds) | .session'

`) + exitCodesOfReads,
		Flags:  []cli.Flag{outputFlag()},
		Action: atPath(show),
	}
}

// show carries out docent show.
func show(ctx context.Context, client *framework.Client, path string, out output) error {
	o, err := inspect.Show(ctx, client, path)
	if err != nil {
		return missing(path, err)
	}
	if out.json {
		return out.object(viewOf(o))
	}
	out.hint(o)
	return out.show(o)
}

// hint says where to look if an object is not a lock.
func (o output) hint(object *inspect.Object) {
	lock := lockOf(object.Path)
	switch {
	case object.Kind != inspect.KindUnknown && object.Kind != inspect.KindEmpty:
	case lock != "":
		o.say("this is a node of a lock: see docent show " + lock)
	case object.Foreign > 0:
		o.say("this is not a lock: docent ls " + object.Path + " lists what is below it")
	}
}

// property is a line of a description.
type property struct{ name, value string }

// describe prints properties, without those that have no value.
func (o output) describe(indent string, all ...property) error {
	var lines strings.Builder
	for _, p := range all {
		if p.value != "" {
			fmt.Fprintf(&lines, "%s%-8s   %s\n", indent, p.name, printable(p.value))
		}
	}
	_, err := fmt.Fprint(o, lines.String())
	return err
}

// show prints all of an object.
func (o output) show(object *inspect.Object) error {
	if err := o.describe("", head(object)...); err != nil {
		return err
	}
	var rest []inspect.Node
	for _, n := range object.Nodes {
		if !n.Holds || !isLock(object) {
			rest = append(rest, n)
			continue
		}
		_, err := fmt.Fprintf(o, "\n%-8s   %s\n", "holder", printable(clientText(n)))
		if err == nil {
			err = o.describe("  ", body(object, n)...)
		}
		if err != nil {
			return err
		}
	}
	return o.queue(object, rest)
}

// head returns the properties of an object.
func head(o *inspect.Object) []property {
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	torn := ""
	if o.Torn {
		torn = "the nodes changed while they were read, and may not have been there together"
	}
	return []property{
		{"path", o.Path},
		{"kind", kindText(o)},
		{"layout", join(o.Layouts)},
		{"state", string(o.State)},
		{"holders", strconv.Itoa(o.Holders)},
		{"waiters", strconv.Itoa(o.Waiters)},
		{"limit", number(o.Limit)},
		{"value", number(o.Value)},
		{"data", o.Data},
		{"warnings", join(o.Warnings)},
		{"foreign", count(o.Foreign)},
		{"not read", count(o.Unread)},
		{"torn", torn},
		{"read at", timeText(o.At)},
	}
}

// body returns the properties of a holder's node.
func body(o *inspect.Object, n inspect.Node) []property {
	props := []property{{"node", nameOf(n)}}
	if n.Err != "" {
		return props
	}
	role := string(n.Role)
	if n.Role == inspect.RoleLock {
		role = ""
	}
	client := clientText(n)
	session := sessionText(n)
	if n.Session == 0 {
		session = "none: the node stays until a program deletes it"
	}
	data := n.Data
	if n.Process != "" || data == client {
		data = ""
	}
	return append([]property{
		{"role", role},
		{"created", sinceText(n.Since, ageOf(o, n))},
		{"held", heldText(o, n)},
		{"session", session},
		{"token", tokenText(n.Token)},
		{"data", data},
	}, props...)
}

// queue prints the nodes of an object that hold nothing against others.
func (o output) queue(object *inspect.Object, nodes []inspect.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(o); err != nil {
		return err
	}
	t := o.table("AHEAD", "ROLE", "CLIENT", "AGE", "SINCE", "SESSION", "NODE")
	for _, n := range nodes {
		ahead := strconv.Itoa(n.Ahead)
		if n.Holds {
			ahead = ""
		}
		if err := t.row(nil, ahead, string(n.Role), clientText(n), ageText(ageOf(object, n)), timeText(n.Since),
			sessionText(n), shortNameOf(n)); err != nil {
			return err
		}
	}
	return t.flush()
}
