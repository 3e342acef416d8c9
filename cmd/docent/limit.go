package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func limitCommand() *cli.Command {
	return &cli.Command{
		Name:      "limit",
		Usage:     "show or set the shared limit of a semaphore",
		UsageText: "docent limit [options] PATH [N]",
		Description: text(`
			docent limit prints the number of permits in the node PATH, or sets it to N and prints the number before
			and after. PATH is the node that programs name in semaphore.WithSharedLimit, or Curator's programs in their
			SharedCount. It is not the semaphore itself. All programs use a new limit at once. After a lower limit no
			holder loses a permit, and new ones wait.

			The number is four bytes, big endian: zkCli.sh set cannot write it. docent writes it only if nothing else
			was written since it was read, and reads again otherwise. So the number before is that which was replaced.

			A node that does not exist, or that has other data, is an error, and nothing is written: the path may be
			wrong. --create makes a missing node for a semaphore that is in use. --force replaces other data, such as
			the text 9 that zkCli.sh has written, or none.

			The limit of a semaphore without WithSharedLimit is set by its programs. docent prints it, and does not set
			it.

			Examples:
			  docent limit /limits/exports
			  docent limit /limits/exports 5
			  docent limit --create /semaphores/exports /limits/exports 5
			  docent limit --force /limits/exports 9                      # which was: zkCli.sh set /limits/exports 9

`) + exitCodesOfNumbers,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "create", Usage: "create a missing node, for the `SEMAPHORE` with this path"},
			&cli.BoolFlag{Name: "force", Usage: "replace data that is not a limit"},
			outputFlag(),
		},
		Action: limit,
	}
}

// limit carries out docent limit.
func limit(ctx context.Context, c *cli.Command) error {
	l, err := newLimit(c)
	if err != nil {
		return err
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		l.client = client
		if l.create != "" {
			if _, err := semaphore.New(client, l.create, int(l.to), semaphore.WithSharedLimit(l.path)); err != nil {
				return usageError{err}
			}
		}
		data, err := newest(ctx, client, l.path)
		switch {
		case errors.Is(err, zk.ErrNoNode) && l.create != "":
			return l.make(ctx)
		case errors.Is(err, zk.ErrNoNode):
			return fmt.Errorf("%w: docent limit --create SEMAPHORE %s N creates it", err, l.path)
		case err != nil:
			return err
		}
		o, err := inspect.Show(ctx, client, l.path)
		switch {
		case err != nil:
			return err
		case o.Kind == inspect.KindSemaphore:
			return l.fixed(o)
		case l.set && isLock(o):
			return usagef("%s is a lock (%s), and no limit: nothing was written", l.path, o.Kind)
		}
		return l.of(ctx, data)
	})
}

// limitCall is a call of docent limit.
type limitCall struct {
	path   string
	set    bool
	to     int64 // if set
	create string
	force  bool
	out    output
	client *framework.Client
}

// newLimit returns what the command line says.
func newLimit(c *cli.Command) (*limitCall, error) {
	l := &limitCall{
		path: c.Args().First(), set: c.Args().Len() == 2, create: c.String("create"), force: c.Bool("force"),
	}
	var err error
	if l.out, err = outputOf(c); err != nil {
		return nil, err
	}
	if n := c.Args().Len(); n < 1 || n > 2 {
		return nil, usagef("want one path, and perhaps a number: see %s --help", c.FullName())
	}
	for _, path := range []string{l.path, l.create} {
		if path == "" && !c.IsSet("create") {
			continue
		}
		if err := framework.CheckPath(path); err != nil {
			return nil, usageError{err}
		}
	}
	if !l.set {
		if l.force || l.create != "" {
			return nil, usagef("--create and --force need a number")
		}
		return l, nil
	}
	if l.to, err = strconv.ParseInt(c.Args().Get(1), 10, 32); err != nil || l.to < 0 {
		return nil, usagef("%q: want a number of permits from 0 to %d", c.Args().Get(1), math.MaxInt32)
	}
	return l, nil
}

// fixed prints a limit that is not shared, or refuses to set it.
func (l *limitCall) fixed(o *inspect.Object) error {
	const advice = "programs set its limit, unless they name a node for it: see semaphore.WithSharedLimit"
	if l.set {
		return usagef("%s is a semaphore: %s", l.path, advice)
	}
	if o.Limit == nil {
		return coded{fmt.Errorf("%s is a semaphore, and notes no limit: %s", l.path, advice), exitData}
	}
	l.out.say(l.path + " is a semaphore: " + advice)
	return l.out.number(change{Path: l.path, Value: *o.Limit})
}

// of prints or sets the limit in the node, which has data.
func (l *limitCall) of(ctx context.Context, data []byte) error {
	count, err := counter.NewCount(l.client, l.path, int32(l.to))
	if err != nil {
		return usageError{err}
	}
	now, readable := limitOf(data)
	switch {
	case !l.set && !readable:
		return coded{fmt.Errorf("%s: %s", l.path, dataText(data)), exitData}
	case !l.set:
		return l.out.number(change{Path: l.path, Value: now})
	case !readable && !l.force:
		return coded{fmt.Errorf("%s: %s: nothing was written; --force replaces it", l.path, dataText(data)), exitData}
	case !readable:
		err := count.Set(ctx, int32(l.to))
		if err != nil {
			return err
		}
		return l.out.number(change{Path: l.path, Value: l.to, wrote: true})
	}
	old, err := replace(ctx, narrow{count}, l.to)
	if err != nil {
		return err
	}
	return l.out.number(change{Path: l.path, Old: &old, Value: l.to, wrote: true})
}

// limitOf returns the limit that data is, false if it is none. Text of four letters would be a limit of
// more than 500 million permits.
func limitOf(data []byte) (limit int64, ok bool) {
	n, err := numberOf(data, formatCount)
	return n, err == nil && n >= 0 && !isText(data)
}

// dataText says what data is that is not a limit.
func dataText(data []byte) string {
	if n, err := numberOf(data, formatCount); err == nil && !isText(data) {
		return fmt.Sprintf("the node has the number %d, which is not a number of permits", n)
	}
	if len(data) == 0 {
		return "the node is empty, and has no limit"
	}
	return fmt.Sprintf("the node has %q, and not a number of permits in four bytes", printable(string(data)))
}

// make creates the node of a limit, for a semaphore that is there.
func (l *limitCall) make(ctx context.Context) error {
	o, err := inspect.Show(ctx, l.client, l.create)
	switch {
	case err != nil:
		return err
	case o.Kind != inspect.KindSemaphore:
		return coded{fmt.Errorf("%s is not a semaphore that is in use", l.create), exitNoNode}
	}
	count, err := counter.NewCount(l.client, l.path, int32(l.to))
	if err != nil {
		return usageError{err}
	}
	old, err := replace(ctx, narrow{count}, l.to)
	if err != nil {
		return err
	}
	made := change{Path: l.path, Value: l.to, wrote: true}
	if old != l.to { // another client has made the node meanwhile
		made.Old = &old
	}
	return l.out.number(made)
}
