// Command zktest runs the server of package zktest as a program, so that tests in any language can
// use a ZooKeeper without Java. It keeps everything in memory: the nodes of clients are lost when
// it ends.
//
//	go run github.com/docent-zk/docent/cmd/zktest
//	go run github.com/docent-zk/docent/cmd/zktest -listen 127.0.0.1:2182 -load nodes.json
//	go run github.com/docent-zk/docent/cmd/zktest -listen 127.0.0.1:0 -servers 3 -commands
//
// When clients can connect it prints one line, "zktest: listening on" and the connect string.
// SIGINT and SIGTERM end it, with exit code 0. Bad flags are code 2. Any other reason that keeps it
// from running, such as a port in use, is code 1.
//
// # Flags
//
//	-listen host:port        the address to listen on, 127.0.0.1:2181 by default; port 0 is a free one.
//	                         Any client that can connect has all permissions.
//	-servers n               the number of servers of the ensemble, 1 by default, at most 9. The first one leads and
//	                         has the address of -listen; the others follow without a lag, on free ports of the loopback
//	                         interface.
//	-commands                read commands from standard input, one a line, and end when it ends; see below
//	-compat version          the version to follow where versions differ: 3.8 or 3.9, the default
//	-load file               a JSON object with the initial nodes: its keys are paths and its values are data, such as
//	                         {"/app/mode": "test", "/app/owner": "me"}; missing nodes above them are created empty
//	-min-timeout 4s          the shortest and the longest session timeout that clients get; the defaults are those of a
//	-max-timeout 40s         real server with the tickTime of 2000 that its sample configuration has
//	-container-interval 1m   the interval at which the server deletes overdue containers and TTL nodes
//	-set name=value          a setting by the real server's name; may be given several times. Settings come after all
//	                         other flags, in the order in which they are given. zktest.WithConfig lists the names.
//
// # Commands
//
// With -commands the program that started the server controls it over a pipe. Each line of standard
// input is a command. When the command has been carried out, one line of standard output answers
// it: "ok", perhaps followed by more words, or "error: " and the reason. Empty lines are not
// answered. The end of standard input ends the server, so that no server outlives the tests that
// started it.
//
//	stop               close the ports and all connections; nodes and sessions are kept, and no time passes for them
//	start              start again, on the same ports; each session has its whole timeout again
//	restart            stop and start
//	wipe               restart with the nodes of -load, and forget all others and all sessions; clients that are still
//	                   connected then are refused from then on, since they have seen later transactions
//	readonly on|off    lose the quorum and serve only clients that accept a read-only server, or regain it; both end
//	                   all connections
//	expire session     end a session, as if its client had been silent for too long, and delete its ephemeral nodes.
//	                   A session is its id, as 0x10000a2b3c40000 or as a decimal number
//	drop session       end the connection of a session, but not the session
//	sessions           answer the ids of all sessions: ok 0x10000a2b3c40000 0x10000a2b3c40001
//	status             answer: ok state=running mode=read-write sessions=2 connect=127.0.0.1:2181
//	                   The state may also be stopped, and the mode read-only.
//	help               answer the names of the commands
//
// A command that changes nothing, such as stop on a stopped server, is answered with ok. The
// commands act on all servers of an ensemble.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// Exit codes.
const (
	fine     = 0
	failed   = 1
	badUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run serves until ctx ends or, with -commands, in does. It returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	s, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return fine
	}
	if err == nil {
		err = s.serve(ctx, in, out)
	}
	var usage usageError
	switch {
	case err == nil:
		return fine
	case errors.As(err, &usage):
		_, _ = fmt.Fprintln(errs, "zktest:", err)
		return badUsage
	}
	_, _ = fmt.Fprintln(errs, err)
	return failed
}

// usageError is an error in the flags.
type usageError struct{ error }

// settings are the values of the flags.
type settings struct {
	listen      string
	servers     int
	commands    bool
	compat      zktest.Compat
	load        string
	least, most time.Duration
	reapEvery   time.Duration
	set         []zktest.Option
}

// mostServers is the largest ensemble that makes sense.
const mostServers = 9

// parse returns its errors, which are usage errors, without printing them. It prints help to out.
func parse(args []string, out io.Writer) (settings, error) {
	s := settings{compat: zktest.V39}
	flags := flag.NewFlagSet("zktest", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:2181", "where to listen, `host:port`; port 0 is a free one")
	flags.IntVar(&s.servers, "servers", 1, "the `number` of servers of the ensemble, a leader and its followers")
	flags.BoolVar(&s.commands, "commands", false, "read the commands below from standard input, and end when it ends")
	flags.Func("compat", "the `version` whose behaviour to have, 3.8 or 3.9 (default 3.9)", s.setCompat)
	flags.StringVar(&s.load, "load", "", "a `file` with a JSON object of paths and data to begin with")
	flags.DurationVar(&s.least, "min-timeout", 4*time.Second, "the shortest session timeout")
	flags.DurationVar(&s.most, "max-timeout", 40*time.Second, "the longest session timeout")
	flags.DurationVar(&s.reapEvery, "container-interval", time.Minute,
		"how often containers and TTL nodes are looked at")
	flags.Func("set", "a setting of the real server, `name=value`; may be given several times", s.addSetting)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(flags, out)
		return s, err
	}
	if err == nil {
		err = s.check(flags.Args())
	}
	if err != nil {
		return s, usageError{err}
	}
	return s, nil
}

func printHelp(flags *flag.FlagSet, out io.Writer) {
	flags.SetOutput(out)
	_, _ = fmt.Fprint(out, `usage: zktest [flags]

Runs a ZooKeeper server for tests, in memory, and prints "zktest: listening on" and the connect string.

Flags:
`)
	flags.PrintDefaults()
	_, _ = fmt.Fprint(out, `
Commands on standard input with -commands, each answered by a line that starts with "ok" or "error:":
`)
	for _, c := range commands {
		_, _ = fmt.Fprintf(out, "  %-18s %s\n", c.usage(), c.help)
	}
}

func (s *settings) setCompat(version string) error {
	compat, ok := map[string]zktest.Compat{"3.8": zktest.V38, "3.9": zktest.V39}[version]
	if !ok {
		return errors.New("want 3.8 or 3.9")
	}
	s.compat = compat
	return nil
}

// addSetting adds a setting name=value. The server checks name and value.
func (s *settings) addSetting(setting string) error {
	name, value, found := strings.Cut(setting, "=")
	if !found || name == "" {
		return errors.New("want name=value")
	}
	s.set = append(s.set, zktest.WithConfig(name, value))
	return nil
}

func (s *settings) check(more []string) error {
	if len(more) > 0 {
		return fmt.Errorf("argument %q: want flags only", more[0])
	}
	_, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return fmt.Errorf("-listen %q: want host:port", s.listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("-listen %q: want a port from 0 to 65535", s.listen)
	}
	if s.servers < 1 || s.servers > mostServers {
		return fmt.Errorf("-servers %d: want a number from 1 to %d", s.servers, mostServers)
	}
	if s.reapEvery < time.Millisecond {
		return fmt.Errorf("-container-interval %v: want 1ms or more", s.reapEvery)
	}
	if s.least < time.Millisecond || s.most < s.least {
		return fmt.Errorf("-min-timeout %v, -max-timeout %v: want 1ms or more, the smaller first", s.least, s.most)
	}
	return nil
}

// options returns the options of the server.
func (s *settings) options() []zktest.Option {
	interval := strconv.FormatInt(s.reapEvery.Milliseconds(), 10)
	return append([]zktest.Option{
		zktest.WithCompat(s.compat), zktest.WithListener(s.listen), zktest.WithSessionTimeouts(s.least, s.most),
		zktest.WithConfig("znode.container.checkIntervalMs", interval),
	}, s.set...)
}

// serve runs the servers until ctx ends or, with -commands, in does.
func (s *settings) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	nodes, err := s.nodes()
	if err != nil {
		return err
	}
	srv, err := zktest.New(s.options()...)
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return err
	case err != nil:
		return usageError{errors.New(strings.TrimPrefix(err.Error(), "zktest: "))}
	}
	defer srv.Close()
	c := &control{srv: srv, nodes: nodes, connect: srv.Addr()}
	for range s.servers - 1 {
		c.connect += "," + srv.Follower(0).Addr()
	}
	if err := srv.Load(nodes); err != nil {
		return fmt.Errorf("zktest: load %s: %w", s.load, err)
	}
	if _, err := fmt.Fprintf(out, "zktest: listening on %s\n", c.connect); err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	if s.commands {
		return c.obey(ctx, in, out)
	}
	<-ctx.Done()
	return nil
}

// nodes returns the initial nodes.
func (s *settings) nodes() (map[string]string, error) {
	if s.load == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.load)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	var nodes map[string]string
	if err := json.Unmarshal(text, &nodes); err != nil {
		return nil, fmt.Errorf("zktest: load %s: want a JSON object of strings: %w", s.load, err)
	}
	return nodes, nil
}
