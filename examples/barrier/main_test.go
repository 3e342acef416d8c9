package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) {
	if child.IsChild() {
		os.Exit(workerMain())
	}
	testzk.Main(m)
}

func parsed(t *testing.T, args string) *config {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c := newConfig(flags)
	require.NoError(t, flags.Parse(strings.Fields(args)))
	return c
}

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), &out), "%s", &out)
	rest := out.String()
	for _, want := range []string{
		`Process \d+ is worker 3\.`,
		`KILLED: worker 1 is dead`,
		`The gate is open`,
		`All 3 workers have loaded`,
		`All are inside, and work`,
		`KILLED: worker 2 is dead`,
		`have left \d+\.\d+ s after its death`,
		`No worker was ahead of the others: 20 rounds in step\.`,
	} {
		place := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNil(t, place, "%s is missing, or not in this order:\n%s", want, &out)
		rest = rest[place[1]:]
	}
	names, _, err := testzk.Observer(t).Children("/docent-examples")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "barrier-") })
	require.Empty(t, names, "nodes are left")
}

func TestInterruptEndsTheDemo(t *testing.T) {
	for _, moment := range []string{"is worker 2", "KILLED: worker 1", "All are inside"} {
		exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
			return parsed(t, "-session 10s").run(ctx, testzk.Connect(), out)
		})
	}
}

func TestWorkerThatDiesUnexpectedlyFailsTheDemo(t *testing.T) {
	out := exampletest.Trigger(`Process (\d+) is worker 3`, func(groups []string) {
		pid, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
	})
	require.ErrorContains(t, parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), out), "process 3 has ended")
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-session 999ms", "-session 11s"} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", io.Discard), "want 1s to 10s")
	}
}
