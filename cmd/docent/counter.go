package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
)

// The formats of counters.
const (
	formatCount  = "count"
	formatAtomic = "atomic"
	formatText   = "text"
)

// afterVerb is how many arguments flags can stand between: what follows may be a negative number.
var afterVerb = 2

func counterCommand() *cli.Command {
	return &cli.Command{
		Name:      "counter",
		Usage:     "show, set or add to a counter",
		UsageText: "docent counter [options] PATH [get | set N | add N]",
		Description: text(`
			docent counter prints the number in the node PATH. set writes N, and add adds N, which may be negative. Both
			print the number before and after. Each is applied once or not at all, also if answers are lost. If docent
			cannot know which, the error says that the outcome is unknown.

			The node has one of three formats:
			  count   four bytes: counter.Count, Curator's SharedCount and DistributedAtomicInteger, kazoo's Counter
			          with support_curator
			  atomic  eight bytes: counter.Atomic, Curator's DistributedAtomicLong
			  text    decimal digits: counter.Atomic with WithText, kazoo's Counter

			docent recognizes the format by the data. If the data can be two formats, as four digits can, docent refuses
			it, and names both. --format says which one it is.

			A node that does not exist, or has other data, is an error, and nothing is written: the path may be wrong.
			--create makes a missing node, in the format of --format.

			Flags stand in front of set and add.

			Examples:
			  docent counter /counters/orders
			  docent counter /counters/orders add 1
			  docent counter /counters/orders add -5
			  docent counter --format count /counters/jobs set 1000
			  docent counter --create --format atomic /counters/new set 0

`) + exitCodesOfNumbers,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT` of the number: count, atomic or text"},
			&cli.BoolFlag{Name: "create", Usage: "create a missing node; needs --format"},
			outputFlag(),
		},
		StopOnNthArg: &afterVerb,
		Action:       count,
	}
}

// counterCall is a call of docent counter.
type counterCall struct {
	path, verb string
	n          int64 // of set and add
	format     string
	create     bool
	out        output
}

// count carries out docent counter.
func count(ctx context.Context, c *cli.Command) error {
	call, err := newCounterCall(c)
	if err != nil {
		return err
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		err := call.recognize(ctx, client)
		if err != nil {
			return err
		}
		n, err := call.number(client)
		if err != nil {
			return err
		}
		result, err := call.carryOut(ctx, n)
		if err != nil {
			return err
		}
		return call.out.number(result)
	})
}

// newCounterCall returns what the command line says.
func newCounterCall(c *cli.Command) (*counterCall, error) {
	args := c.Args().Slice()
	call := &counterCall{verb: "get", format: c.String("format"), create: c.Bool("create")}
	var err error
	if call.out, err = outputOf(c); err != nil {
		return nil, err
	}
	if len(args) > 1 {
		call.verb = args[1]
	}
	want := map[string]int{"get": 2, "set": 3, "add": 3}[call.verb]
	if len(args) != want && len(args) != 1 {
		return nil, usagef("want one path, and get, set N or add N behind all flags: see %s --help", c.FullName())
	}
	call.path = args[0]
	if err := framework.CheckPath(call.path); err != nil {
		return nil, usageError{err}
	}
	if want == 3 {
		if call.n, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return nil, usagef("%q: want an integer of 64 bits", args[2])
		}
	}
	switch call.format {
	case formatCount, formatAtomic, formatText:
	case "":
		if c.IsSet("format") || call.create {
			return nil, usagef("--format: want count, atomic or text")
		}
	default:
		return nil, usagef("--format %q: want count, atomic or text", call.format)
	}
	if call.create && call.verb == "get" {
		return nil, usagef("--create needs set or add")
	}
	return call, nil
}

// recognize sets the format, and returns an error if the node has no such number.
func (c *counterCall) recognize(ctx context.Context, client *framework.Client) error {
	data, err := newest(ctx, client, c.path)
	switch {
	case errors.Is(err, zk.ErrNoNode) && c.create:
		return nil
	case err != nil:
		return err
	case c.format == "":
		c.format, err = formatOf(data)
	}
	if err == nil && len(data) > 0 {
		_, err = numberOf(data, c.format)
	}
	if err != nil {
		return coded{fmt.Errorf("%s: %w", c.path, err), exitData}
	}
	return nil
}

// number returns the number in the node.
func (c *counterCall) number(client *framework.Client) (number, error) {
	var n number
	var err error
	switch c.format {
	case formatCount:
		var count *counter.Count
		count, err = counter.NewCount(client, c.path, 0)
		n = narrow{count}
	case formatAtomic:
		n, err = counter.NewAtomic(client, c.path)
	default:
		n, err = counter.NewAtomic(client, c.path, counter.WithText())
	}
	if err != nil {
		return nil, usageError{err}
	}
	return n, nil
}

// carryOut does what the verb says.
func (c *counterCall) carryOut(ctx context.Context, n number) (change, error) {
	result := change{Path: c.path, Format: c.format}
	var old int64
	var err error
	switch c.verb {
	case "get":
		result.Value, err = n.Get(ctx)
		return result, err
	case "add":
		result.Value, err = n.Add(ctx, c.n)
		old = result.Value - c.n
	case "set":
		result.Value = c.n
		old, err = replace(ctx, n, c.n)
	}
	result.Old, result.wrote = &old, true
	return result, err
}

var decimal = regexp.MustCompile(`^[-+]?[0-9]+$`)

// formatOf returns the format that data shows. It returns an error if data can have two formats, or is no
// number.
func formatOf(data []byte) (string, error) {
	format := map[int]string{4: formatCount, 8: formatAtomic}[len(data)]
	switch {
	case len(data) == 0:
		return "", errors.New("the node is empty: say with --format what it is to have")
	case !isText(data) && format != "":
		return format, nil
	case !isText(data):
		return "", fmt.Errorf("the node has %d bytes, and not a number", len(data))
	case decimal.Match(data) && format == "":
		return formatText, nil
	case format == "":
		return "", fmt.Errorf("the node has %q, and not a number", printable(string(data)))
	}
	binary, _ := numberOf(data, format)
	reading := fmt.Sprintf("%d in the format %s", binary, format)
	if text, err := numberOf(data, formatText); err == nil {
		reading = fmt.Sprintf("%d in the format text, or ", text) + reading
	}
	return "", fmt.Errorf("the node has %q, which can be %s: say with --format which", data, reading)
}

// isText reports whether data is text that can be printed.
func isText(data []byte) bool {
	return utf8.Valid(data) && strings.IndexFunc(string(data), func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// numberOf returns the number that data is in a format.
func numberOf(data []byte, format string) (int64, error) {
	switch {
	case format == formatCount && len(data) == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), nil
	case format == formatAtomic && len(data) == 8:
		return int64(binary.BigEndian.Uint64(data)), nil
	case format == formatText:
		if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the node has %d bytes, and not a number in the format %s", len(data), format)
}
