package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
)

// brokenEnv makes the processes of this test binary note a tick before they run it.
const brokenEnv = "DOCENT_CRON_BROKEN"

func TestMain(m *testing.M) {
	switch {
	case child.IsChild() && os.Getenv(brokenEnv) != "":
		os.Exit(child.Main(os.Stdin, os.Stderr, "scheduler", func(ctx context.Context, j job) error {
			return runScheduler(ctx, j, noteFirst)
		}))
	case child.IsChild():
		os.Exit(schedulerMain())
	}
	testzk.Widen()
	os.Exit(m.Run())
}

// noteFirst is lead, except that it notes a tick before it runs it.
func noteFirst(s scheduler, ctx context.Context, t *leader.Term) error {
	for {
		last, version, err := s.last(ctx)
		if err != nil {
			return err
		}
		if err := s.wait(ctx, last+1); err != nil {
			return err
		}
		if err := s.note(ctx, t, last+1, version); err != nil {
			return err
		}
		if err := s.run(ctx, t, last+1); err != nil {
			return err
		}
	}
}

func parsed(t *testing.T, args string) *config {
	t.Helper()
	return exampletest.Parsed(t, newConfig, args)
}

func TestEachTickRunsOnce(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"-every 100ms -session 10s",
		"-every 10ms -session 10s -processes 2 -ticks 6",
		"-every 10ms -session 10s -processes 5 -ticks 100",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			c := parsed(t, args)
			var out bytes.Buffer
			require.NoError(t, c.run(t.Context(), server.Connect(), &out), "%s", &out)
			text := out.String()
			requireReported(t, text, c.ticks)
			require.Equal(t, 2, strings.Count(text, "KILLED"), text)
			require.Equal(t, c.processes+2, strings.Count(text, "Started process"), text)
			require.Regexp(t, `Too late, the request of process \d .* for tick \d+ arrives\. `+
				`The store refuses it: fence: stale token`, text)
			require.Regexp(t, `tick +\d+: process \d+ .* runs it, but the store has it already, from process`, text)
			requireNothingLeft(t, server)
		})
	}
}

// requireReported requires that the text has a run for each tick, and at the end the process that
// ran it.
func requireReported(t *testing.T, text string, ticks int) {
	t.Helper()
	runLine := regexp.MustCompile(`(?m)tick +(\d+): process \d+ \(token \d+\) runs it(, \d+\.\d s late)?$`)
	runs := runLine.FindAllStringSubmatch(text, -1)
	require.Len(t, runs, ticks, text)
	for i, run := range runs {
		require.Equal(t, strconv.Itoa(i+1), run[1], text)
	}
	next := 1
	partLine := regexp.MustCompile(`  - ticks (\d+) to (\d+) by process \d+ \(token \d+\)`)
	for _, part := range partLine.FindAllStringSubmatch(text, -1) {
		require.Equal(t, strconv.Itoa(next), part[1], text)
		last, err := strconv.Atoi(part[2])
		require.NoError(t, err)
		next = last + 1
	}
	require.Equal(t, ticks+1, next, text)
}

// requireNothingLeft requires that no node is left except containers.
func requireNothingLeft(t *testing.T, server testzk.Server) {
	t.Helper()
	path := exampletest.Path(t, server)
	nodes, _, err := testzk.Connected(t, server.Connect()).Children(testzk.Context(t), path)
	require.NoError(t, err)
	require.Subset(t, []string{"leader"}, nodes)
	exampletest.NoCandidates(t, server, path+"/leader")
}

// A tick that is noted before its effect is run at most once. If its leader dies in between, it has
// no effect.
func TestTickThatIsNotedFirstIsLost(t *testing.T) {
	t.Setenv(brokenEnv, "1")
	server := testzk.Own(t, testzk.Seldom)
	var out bytes.Buffer
	err := parsed(t, "-every 50ms -session 10s").run(t.Context(), server.Connect(), &out)
	require.ErrorIs(t, err, errLeftOut, "%s", &out)
	require.NotContains(t, out.String(), "exactly once")
}

func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"tick   1:", "KILLED", "Too late", "has it already"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
				return parsed(t, "-every 100ms -session 10s").run(ctx, server.Connect(), out)
			})
			requireNothingLeft(t, server)
		})
	}
}

func TestDemoThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	c := parsed(t, "-every 10ms -session 10s")
	c.slack = 500 * time.Millisecond
	require.ErrorContains(t, c.run(testzk.Context(t), server.Connect(), io.Discard), "it took longer than 620ms")
}

func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-processes 1":   "-processes 1: want 2 to 10",
		"-processes 11":  "-processes 11: want 2 to 10",
		"-ticks 5":       "-ticks 5: want 6 to 1000",
		"-ticks 1001":    "-ticks 1001: want 6 to 1000",
		"-every 9ms":     "-every 9ms: want 10ms to 1m",
		"-every 61s":     "-every 1m1s: want 10ms to 1m",
		"-session 999ms": "-session 999ms: want 1s to 10s",
		"-session 11s":   "-session 11s: want 1s to 10s",
	} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", io.Discard), want)
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	newConfig(flags)
	require.ErrorContains(t, flags.Parse([]string{"-every", "3"}), `invalid value "3"`)
	require.ErrorContains(t, parsed(t, "").run(t.Context(), "localhost:port", io.Discard), "localhost:port")
}

func TestStore(t *testing.T) {
	var s store
	first := request{Process: 1, Token: 5, Tick: 1}
	a, err := s.put(first)
	require.NoError(t, err)
	require.Equal(t, answer{By: first}, a)

	a, err = s.put(request{Process: 2, Token: 7, Tick: 1})
	require.NoError(t, err)
	require.Equal(t, answer{By: first, Before: true}, a, "a tick has one effect, also if another process repeats it")

	_, err = s.put(request{Process: 1, Token: 5, Tick: 2})
	require.ErrorIs(t, err, fence.ErrStale, "the request of a later leader came before, though it changed nothing")
	_, err = s.put(request{Process: 2, Token: 7, Tick: 3})
	require.ErrorIs(t, err, errLeftOut)
	_, err = s.put(request{Process: 2, Token: 7, Tick: 0})
	require.ErrorContains(t, err, "no such tick: 0")
	require.Equal(t, []request{first}, s.all())
}
