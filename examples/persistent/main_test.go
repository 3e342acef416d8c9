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
		os.Exit(serverMain())
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
	lines := []string{
		`Process \d+ is the server\.`,
		`It is registered at /docent-examples/persistent-\w+, in session 0x`,
		`DELETED`,
		`later it is there again`,
		`ELECTION`,
		`has stayed as it was`,
	}
	if child.CanPause {
		lines = append(lines, `PAUSED`, `its session has expired`, `is registered again, in session 0x`)
	}
	exampletest.Lines(t, out.String(), append(lines, `STOPPED`, `The node was there while the server was\.`)...)
	children, err := e.Children(exampletest.Folder)
	require.NoError(t, err)
	require.Empty(t, children)
}

func TestDemoOnOtherServers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), nil, &out), "%s", &out)
	exampletest.Lines(t, out.String(), `their leader stays`, `The node was there while the server was`)
}

func TestInterruptEndsTheDemo(t *testing.T) {
	for _, moment := range []string{"DELETED", "STOPPED"} {
		exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
			return parsed(t, "-session 10s").run(ctx, testzk.Connect(), nil, out)
		})
	}
}

func TestServerThatDiesFailsTheDemo(t *testing.T) {
	out := exampletest.Trigger(`Process (\d+) is the server`, func(groups []string) {
		pid, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
	})
	err := parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), nil, out)
	require.ErrorContains(t, err, "process 1 has ended")
}

func TestDemoHasALimit(t *testing.T) {
	c := parsed(t, "")
	c.Limit = time.Nanosecond
	require.ErrorContains(t, c.run(t.Context(), testzk.Connect(), nil, io.Discard), "it took longer than 1ns")
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-session 999ms", "-session 11s"} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", nil, io.Discard), "want 1s to 10s")
	}
}
