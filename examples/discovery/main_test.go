package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) {
	if child.IsChild() {
		os.Exit(instanceMain())
	}
	testzk.Main(m)
}

func parsed(t *testing.T, args string) *config {
	t.Helper()
	return exampletest.Parsed(t, newConfig, args)
}

func TestDemo(t *testing.T) {
	e, err := program.NewEnsemble()
	require.NoError(t, err)
	defer e.Close()
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), e.Connect(), e.KillLeader, &out), "%s", &out)
	exampletest.Lines(t, out.String(),
		`3 instances, each a process of its own`,
		`Process \d+ is instance 3\.`,
		`KILLED: instance 1`,
		`50 more are answered`,
		`s after its death`,
		`RESTARTED: instance 2`,
		`Process \d+ is instance 2\.`,
		`ELECTION: the ZooKeeper leader is dead`,
		`meanwhile 50 more requests were answered`,
		`No request was lost: \d+ were answered, and \d+ attempts were repeated\.`)
	// The view reports this in a goroutine of its own.
	exampletest.Lines(t, out.String(),
		`KILLED: instance 1`,
		`not listed any more: instance 1 at`,
		`No request was lost`)
}

func TestDemoOnOtherServers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), nil, &out), "%s", &out)
	exampletest.Lines(t, out.String(), `their leader stays`, `No request was lost`)
}

func TestInterruptEndsTheDemo(t *testing.T) {
	for _, moment := range []string{"is instance 2", "KILLED", "RESTARTED"} {
		exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
			return parsed(t, "-session 10s").run(ctx, testzk.Connect(), nil, out)
		})
	}
}

func TestInstanceThatDiesUnexpectedlyFailsTheDemo(t *testing.T) {
	out := exampletest.Trigger(`Process (\d+) is instance 3`, func(groups []string) {
		pid, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
	})
	err := parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), nil, out)
	require.ErrorContains(t, err, "process 3 has ended")
}

func TestLostRequestFailsTheDemo(t *testing.T) {
	c := parsed(t, "")
	c.patience = time.Nanosecond
	require.ErrorContains(t, c.run(t.Context(), testzk.Connect(), nil, io.Discard), "LOST: a request was not answered")
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-session 999ms", "-session 11s"} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", nil, io.Discard), "want 1s to 10s")
	}
}
