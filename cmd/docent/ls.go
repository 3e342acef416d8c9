package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/inspect"
)

// The values of --kind and --state.
var (
	kinds = []inspect.Kind{
		inspect.KindMutex, inspect.KindRWLock, inspect.KindSemaphore, inspect.KindLatch, inspect.KindTermRecord,
		inspect.KindStriped, inspect.KindCondition, inspect.KindBarrier, inspect.KindDoubleBarrier,
		inspect.KindCyclicBarrier, inspect.KindCountDown, inspect.KindCount, inspect.KindAtomic, inspect.KindValue,
		inspect.KindGroup, inspect.KindService, inspect.KindEmpty, inspect.KindUnknown,
	}
	states = []inspect.State{
		inspect.StateFree, inspect.StateHeld, inspect.StateWaitedFor, inspect.StateAbandoned, inspect.StateClosed,
		inspect.StateOpen,
	}
)

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list locks, elections, semaphores, barriers, counters and groups below a path",
		UsageText: "docent ls [options] ROOT",
		Description: text(`
			docent ls prints the objects at and below ROOT, those of docent, Curator, kazoo and go-zookeeper/zk. It
			only reads. It knows objects by their nodes: an election has those of a mutex, and a kind with ? is a
			shape that other programs' nodes can have, too.

			STATE is held: a node holds, and none waits; waited-for: nodes wait, as a rule while another one holds;
			abandoned: the holder's node belongs to no session, so it stays until a program deletes it; free, closed,
			open, or the number of a counter. AGE is that of the oldest node. HOLDER is what the holders' nodes say
			about their clients.

			Nodes that may not be read are named on standard error, the list goes on, and the exit code is 77.

			A lock that is free often has no node, and is not listed then. --state free also lists empty nodes that
			had children, which are free locks as a rule.

			The kinds are mutex, rwlock, semaphore, latch, term-record, striped, condition, barrier, double-barrier,
			cyclic-barrier, count-down, count, atomic, value, group, service, and, only with --kind, empty and unknown.

			Examples:
			  docent ls /                                  # everything, also on a large ensemble
			  docent ls --state waited-for /locks          # where clients wait
			  docent ls --state held,waited-for /locks     # locks with a holder
			  docent ls --state abandoned /                # what no end of a session cleans up
			  docent ls --kind mutex --kind rwlock /app    # or --kind mutex,rwlock
			  docent ls --limit 20 /locks
			  docent ls -o json /locks | jq -r 'select(.waiters > 10) | .path'

`) + exitCodesOfReads,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "kind", Usage: "print only objects of this `KIND`; may be repeated"},
			&cli.StringSliceFlag{Name: "state", Usage: "print only objects in this `STATE`; may be repeated"},
			&cli.IntFlag{Name: "limit", Usage: "print `N` objects at most", HideDefault: true},
			outputFlag(),
		},
		Action: ls,
	}
}

// ls carries out docent ls.
func ls(ctx context.Context, c *cli.Command) error {
	root, err := onePath(c)
	if err != nil {
		return err
	}
	out, err := outputOf(c)
	if err != nil {
		return err
	}
	l := listing{
		table: out.table("PATH", "KIND", "STATE", "HOLDERS", "WAITERS", "AGE", "HOLDER"),
		limit: c.Int("limit"),
	}
	if l.kinds, err = values(c, "kind", kinds); err != nil {
		return err
	}
	if l.states, err = values(c, "state", states); err != nil {
		return err
	}
	if c.IsSet("limit") && l.limit < 1 {
		return usagef("--limit %d: want a number that is positive", l.limit)
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		return l.print(ctx, client, root)
	})
}

// join returns the names of constants.
func join[T ~string](all []T) string {
	var names []string
	for _, one := range all {
		names = append(names, string(one))
	}
	return strings.Join(names, ", ")
}

// values returns the values of a flag that each must be one of all.
func values[T ~string](c *cli.Command, flag string, all []T) (chosen []T, err error) {
	for _, value := range c.StringSlice(flag) {
		if !slices.Contains(all, T(value)) {
			return nil, usagef("--%s %q: want one of %s", flag, value, join(all))
		}
		chosen = append(chosen, T(value))
	}
	return chosen, nil
}

// listing is what docent ls prints, and where.
type listing struct {
	table  *table
	kinds  []inspect.Kind // empty: all
	states []inspect.State
	limit  int // 0: none
}

// mostNodes is how many nodes of an object docent ls reads.
const mostNodes = 64

// options returns how to walk.
func (l *listing) options() []inspect.Option {
	opts := []inspect.Option{inspect.WithMaxNodes(mostNodes)}
	if slices.Contains(l.states, inspect.StateFree) || slices.Contains(l.kinds, inspect.KindEmpty) ||
		slices.Contains(l.kinds, inspect.KindUnknown) {
		opts = append(opts, inspect.WithAll())
	}
	return opts
}

// wants reports whether an object is to be printed.
func (l *listing) wants(o *inspect.Object) bool {
	return (len(l.kinds) == 0 || slices.Contains(l.kinds, o.Kind)) &&
		(len(l.states) == 0 || slices.Contains(l.states, o.State))
}

func (l *listing) print(ctx context.Context, client *framework.Client, root string) error {
	var refused error
	printed := 0
	for o, err := range inspect.Walk(ctx, client, root, l.options()...) {
		switch {
		case o == nil:
			return l.end(printed, missing(root, err))
		case err != nil:
			l.table.say(err.Error())
			refused = errUnread
			continue
		case !l.wants(o):
			continue
		}
		if err := l.row(o); err != nil {
			return err
		}
		if printed++; printed == l.limit {
			l.table.say(fmt.Sprintf("--limit %d is reached: there may be more", l.limit))
			break
		}
	}
	if printed == 0 {
		l.table.say(l.nothing() + root)
	}
	return l.end(printed, refused)
}

// nothing says that nothing is listed, up to the path.
func (l *listing) nothing() string {
	if len(l.kinds) == 0 && len(l.states) == 0 {
		return "there are no locks or other objects at and below "
	}
	return "there is nothing of this kind at and below "
}

// end prints the rest of the table, without its headings if there are no rows.
func (l *listing) end(printed int, err error) error {
	if printed == 0 {
		return err
	}
	return errors.Join(err, l.table.flush())
}

// errUnread is the error if some nodes could not be read.
var errUnread = coded{errors.New("the list is not complete: not all nodes may be read"), exitRefused}

func (l *listing) row(o *inspect.Object) error {
	return l.table.row(viewOf(o), o.Path, kindText(o), stateText(o), holdersText(o), strconv.Itoa(o.Waiters),
		ageText(oldest(o)), clientsText(o))
}
