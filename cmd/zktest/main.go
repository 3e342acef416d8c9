// Command zktest runs the server of package zktest by itself, for work on programs that need a ZooKeeper, without Java. It keeps
// everything in memory: what clients have created is gone when it ends.
//
//	go run github.com/docent-zk/docent/cmd/zktest
//	go run github.com/docent-zk/docent/cmd/zktest -listen 127.0.0.1:2182 -load nodes.json
//
// When clients can connect it prints one line that says where. SIGINT and SIGTERM end it, with exit code 0. Bad flags are code 2, and
// all else that keeps it from running, such as a port that is taken, is code 1.
//
// The flags are
//
//	-listen host:port   where to listen, 127.0.0.1:2181 by default; port 0 is a free one. Anybody who can connect may do anything.
//	-compat 3.9         whose behaviour to have where versions differ: 3.8 or 3.9, the default
//	-load file          a JSON object whose keys are paths and whose values are the data of the nodes to begin with:
//	                    {"/app/mode": "test", "/app/owner": "me"}; missing nodes above them are created empty
//	-min-timeout 4s     the shortest and the longest session timeout that clients get; the defaults are those of a real
//	-max-timeout 40s    server with the tickTime of 2000 that its sample configuration has
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
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends. It returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	s, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return fine
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "zktest:", err)
		return badUsage
	}
	if err := s.serve(ctx, out); err != nil {
		_, _ = fmt.Fprintln(errs, err)
		return failed
	}
	return fine
}

// settings are what the flags say.
type settings struct {
	listen      string
	compat      zktest.Compat
	load        string
	least, most time.Duration
}

// parse does not print its errors; it prints help to out.
func parse(args []string, out io.Writer) (settings, error) {
	s := settings{compat: zktest.V39}
	flags := flag.NewFlagSet("zktest", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:2181", "where to listen, `host:port`")
	flags.Func("compat", "the `version` whose behaviour to have, 3.8 or 3.9 (default 3.9)", s.setCompat)
	flags.StringVar(&s.load, "load", "", "a `file` with a JSON object of paths and data to begin with")
	flags.DurationVar(&s.least, "min-timeout", 4*time.Second, "the shortest session timeout")
	flags.DurationVar(&s.most, "max-timeout", 40*time.Second, "the longest session timeout")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		_, _ = fmt.Fprintln(out, "usage: zktest [flags]")
		flags.PrintDefaults()
	}
	if err != nil {
		return s, err
	}
	return s, s.check(flags.Args())
}

func (s *settings) setCompat(version string) error {
	compat, ok := map[string]zktest.Compat{"3.8": zktest.V38, "3.9": zktest.V39}[version]
	if !ok {
		return errors.New("want 3.8 or 3.9")
	}
	s.compat = compat
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
	if s.least < time.Millisecond || s.most < s.least {
		return fmt.Errorf("-min-timeout %v, -max-timeout %v: want 1ms or more, the smaller first", s.least, s.most)
	}
	return nil
}

// serve runs the server until ctx ends.
func (s *settings) serve(ctx context.Context, out io.Writer) error {
	nodes, err := s.nodes()
	if err != nil {
		return err
	}
	srv, err := zktest.New(zktest.WithCompat(s.compat), zktest.WithListener(s.listen), zktest.WithSessionTimeouts(s.least, s.most))
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := srv.Load(nodes); err != nil {
		return fmt.Errorf("zktest: load %s: %w", s.load, err)
	}
	if _, err := fmt.Fprintf(out, "zktest: listening on %s\n", srv.Addr()); err != nil {
		return fmt.Errorf("zktest: %w", err)
	}
	<-ctx.Done()
	return nil
}

// nodes are those to begin with.
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
