// Package peer is the part of the benchmark that runs in the processes under comparison. A peer
// opens sessions, acquires and releases locks, and measures how long that takes, as requested on
// its standard input. The peers in Java and Python beside it do the same.
//
//	> open 1 job=loop kind=mutex servers=127.0.0.1:2181 path=/bench/1 clients=1 threads=1
//	< opened
//	> run 1 500
//	< ran ops=1234 nanos=500012345 overlaps=0 hist=6000:7,6001:9
//	> close 1
//	< closed
//
// A job stays open while others are, so that peers can take turns. A job that a peer cannot do at
// all is "unsupported". Other errors are "failed".
package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// system is a system with locks.
type system interface {
	version() string
	// connect opens a session.
	connect(ctx context.Context, servers string) (client, error)
}

// client is a session.
type client interface {
	// lock returns a lock, and errUnsupported if there is none of the kind.
	lock(kind, path string) (lock, error)
	// children returns the number of nodes directly below path.
	children(ctx context.Context, path string) (int, error)
	close()
}

// lock must not be used by several goroutines at a time.
type lock interface {
	acquire(ctx context.Context) error
	release() error
}

// running is an open job.
type running interface {
	run(ctx context.Context, long time.Duration) (Result, error)
	close()
}

var errUnsupported = errors.New("not supported")

var systems = map[string]system{"docent": docent{}, "floor": driver{}, "zk.Lock": driver{locks: true}, "etcd": etcd{}}

// Serve handles requests until the end of its input. It begins with a line that describes the peer.
func Serve(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	s, ok := systems[name]
	if !ok {
		return fmt.Errorf("no peer %q", name)
	}
	fmt.Fprintf(out, "ready %s\n", s.version())
	open := map[string]running{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := handle(ctx, s, open, lines.Text())
		switch {
		case errors.Is(err, errUnsupported):
			answer = "unsupported"
		case err != nil:
			answer = "failed " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Fprintln(out, answer)
	}
	return lines.Err()
}

func handle(ctx context.Context, s system, open map[string]running, line string) (string, error) {
	verb, rest, _ := strings.Cut(line, " ")
	id, rest, _ := strings.Cut(rest, " ")
	job, there := open[id]
	switch {
	case verb == "open" && !there:
		job, err := start(ctx, s, rest)
		if err == nil {
			open[id] = job
		}
		return "opened", err
	case verb == "run" && there:
		ms, err := strconv.Atoi(rest)
		if err != nil {
			return "", err
		}
		r, err := job.run(ctx, time.Duration(ms)*time.Millisecond)
		return "ran " + r.String(), err
	case verb == "close" && there:
		delete(open, id)
		job.close()
		return "closed", nil
	}
	return "", fmt.Errorf("cannot do %q", line)
}

func start(ctx context.Context, s system, words string) (running, error) {
	job, err := ParseJob(words)
	if err != nil {
		return nil, err
	}
	starts := map[string]func(context.Context, system, Job) (running, error){
		"loop": newLoop, "watch": newWatch, "queue": newQueue, "held": newHeld, "waiting": newWaiting,
		"storm": newStorm, "paths": newPaths, "idle": newIdle,
	}
	if starts[job.Name] == nil {
		return nil, errUnsupported
	}
	return starts[job.Name](ctx, s, job)
}

// clients are the sessions of one job.
type clients []client

// connect opens n sessions.
func connect(ctx context.Context, s system, job Job, n int) (all clients, err error) {
	for range n {
		c, err := s.connect(ctx, job.Servers)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (all clients) close() {
	for _, c := range all {
		c.close()
	}
}
