package main

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
	"github.com/docent-zk/docent/zktest"
)

// peerVariable is set for the processes of this program that are peers.
const peerVariable = "DOCENT_BENCH_PEER"

func TestMain(m *testing.M) {
	if name := os.Getenv(peerVariable); name != "" {
		if err := peer.Serve(context.Background(), name, os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	leaks.Main(m)
}

func TestProcessIsAPeer(t *testing.T) {
	p := launched(t, "docent")
	srv := zktest.Start(t)
	require.Contains(t, p.version, "docent on go")
	job := loop("mutex", 1, 1)
	job.Servers, job.Path = srv.Addr(), "/bench"
	require.NoError(t, p.open("one", job))
	r, err := p.run("one", 20*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, r.Ops)
	require.Positive(t, r.Figures[peer.Allocated])
	if runtime.GOOS == "linux" {
		require.Positive(t, r.Figures[report.Processor])
	}
	require.NoError(t, p.close("one"))
	_, err = p.run("one", time.Millisecond)
	require.ErrorContains(t, err, "cannot do")
	require.ErrorIs(t, p.open("two", peer.Job{Name: "nothing"}), errUnsupported)
}

func TestProcessThatHasDiedIsStartedForTheNextJob(t *testing.T) {
	p := launched(t, "floor")
	require.NoError(t, p.cmd.Process.Kill())
	_, err := p.run("one", time.Millisecond)
	require.ErrorContains(t, err, "floor has ended")
	require.NoError(t, p.close("one"))
	require.ErrorIs(t, p.open("one", peer.Job{Name: "nothing"}), errUnsupported, "the process answers")
}

func launched(t *testing.T, name string) *process {
	t.Helper()
	t.Setenv(peerVariable, name)
	p, err := launch(name, os.Args[0])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.end()) })
	return p
}

// TestPeersInOtherLanguagesDoTheSame needs no real server, but Curator and kazoo.
func TestPeersInOtherLanguagesDoTheSame(t *testing.T) {
	realzk.Need(t)
	c := &peerGroup{all: map[string]contender{}, scratch: t.TempDir()}
	t.Cleanup(c.endAll)
	srv := zktest.Start(t)
	for _, name := range []string{"curator", "kazoo"} {
		command, err := c.command(name, "")
		require.NoError(t, err)
		require.NoError(t, c.start(name, command))
	}
	for _, w := range plan(settings[0], few) {
		for _, e := range w.holding(time.Millisecond).entries {
			if c.all[e.peer] == nil {
				continue
			}
			m := &measurer{peers: c.all, place: counting{srv}}
			err := m.open(w, e)
			if e.peer == "kazoo" && (e.job.Kind == "semaphore-mutex" || e.job.Kind == "multi") {
				require.ErrorIs(t, err, errUnsupported)
				continue
			}
			require.NoError(t, err, "%s: %s", e.peer, w.name)
			checkResult(t, e, func() peer.Result {
				r, err := c.all[e.peer].run(e.label, 100*time.Millisecond)
				require.NoError(t, err, "%s: %s", e.peer, w.name)
				return r
			})
			require.NoError(t, c.all[e.peer].close(e.label))
		}
	}
}

func checkResult(t *testing.T, e entry, run func() peer.Result) {
	t.Helper()
	for end := time.Now().Add(testzk.Patience); ; {
		r := run()
		require.Positive(t, r.Ops, e.label)
		require.Zero(t, r.Overlaps)
		if e.job.Name != "loop" || e.job.Shared || e.job.Threads != 1 {
			return
		}
		require.Equal(t, r.Ops, r.Latencies.Count())
		require.LessOrEqual(t, r.Latencies.Quantile(0.5)*time.Duration(r.Ops)/2, r.Took)
		// The latencies add up to the whole time, unless the machine stands still before the first
		// operation or after the last.
		if r.Latencies.Quantile(1)*time.Duration(r.Ops) >= r.Took/2 {
			return
		}
		require.True(t, time.Now().Before(end), "%s: the latencies do not add up to %v", e.label, r.Took)
	}
}
