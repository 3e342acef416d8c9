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
)

// brokenEnv makes each candidate of this test binary lead twice at the same time, the second time
// in an election in which it is the only candidate.
const brokenEnv = "DOCENT_LEADER_BROKEN"

func TestMain(m *testing.M) {
	switch {
	case child.IsChild() && os.Getenv(brokenEnv) != "":
		os.Exit(child.Main(os.Stdin, os.Stderr, "candidate", func(ctx context.Context, j job) error {
			second := j
			second.Path += "-" + strconv.Itoa(j.Number)
			go func() { _ = runCandidate(ctx, second) }()
			return runCandidate(ctx, j)
		}))
	case child.IsChild():
		os.Exit(candidateMain())
	}
	testzk.Widen()
	os.Exit(m.Run())
}

func parsed(t *testing.T, args string) *config {
	t.Helper()
	return exampletest.Parsed(t, newConfig, args)
}

func TestDemo(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), server.Connect(), &out), "%s", &out)
	text := out.String()
	rest := text
	for _, want := range []string{
		`3 candidates, each a process of its own\. The session timeout is 10s\.`,
		`observed: candidate \d leads \(token \d+\)`,
		`RESIGNS: candidate \d \(token \d+\)`,
		`\.\.\. and \d+\.\d\d s later candidate \d \(token \d+\) acts as the leader\.`,
		`KILLED: candidate \d \(token \d+\)`,
		`later candidate \d \(token \d+\) acts`,
		`Process \d+ is candidate \d\.`,
		`PAUSED: candidate \d \(token \d+\)`,
		`later candidate \d \(token \d+\) acts`,
		`RESUMED: candidate \d \(token \d+\)`,
		`finds out, without having done anything: framework: session lost`,
		`The election did what it promises: \d+ terms`,
	} {
		if !child.CanPause && regexp.MustCompile(`PAUSED|RESUMED|finds out`).MatchString(want) {
			continue
		}
		place := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNil(t, place, "%s is missing, or not in this order:\n%s", want, text)
		rest = rest[place[1]:]
	}
	exampletest.NoCandidates(t, server, exampletest.Path(t, server))
}

func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"is candidate 2", "RESIGNS", "KILLED", "PAUSED", "RESUMED"} {
		if !child.CanPause && strings.HasSuffix(moment, "ED") && moment != "KILLED" {
			continue
		}
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
				return parsed(t, "-session 10s").run(ctx, server.Connect(), out)
			})
			exampletest.NoCandidates(t, server, exampletest.Path(t, server))
		})
	}
}

func TestCandidateThatDiesUnexpectedlyFailsTheDemo(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	out := exampletest.Trigger(`Process (\d+) is candidate 3`, func(groups []string) {
		pid, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
	})
	require.ErrorContains(t, parsed(t, "-session 10s").run(t.Context(), server.Connect(), out), "process 3 has ended")
}

// The resource must detect a broken election.
func TestBrokenElectionFailsTheDemo(t *testing.T) {
	t.Setenv(brokenEnv, "1")
	server := testzk.Own(t, testzk.Seldom)
	var out bytes.Buffer
	err := parsed(t, "-session 10s").run(t.Context(), server.Connect(), &out)
	require.ErrorContains(t, err, "BROKEN", "%s", &out)
	require.NotContains(t, out.String(), "what it promises")
}

func TestDemoThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	c := parsed(t, "-session 10s")
	c.Limit = 500 * time.Millisecond
	require.ErrorContains(t, c.run(testzk.Context(t), server.Connect(), io.Discard), "it took longer than 500ms")
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-session 999ms", "-session 11s", "-session -3s"} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", io.Discard), "want 1s to 10s")
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	newConfig(flags)
	require.ErrorContains(t, flags.Parse([]string{"-session", "3"}), `invalid value "3"`)
	require.ErrorContains(t, parsed(t, "").run(t.Context(), "localhost:port", io.Discard), "localhost:port")
}

func TestResource(t *testing.T) {
	valid, expired := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	type step struct {
		name string
		request
		want error
	}
	for name, steps := range map[string][]step{
		"one after the other": {
			{stepAct, request{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, request{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepResign, request{Candidate: 1, Token: 5}, nil},
			{stepAct, request{Candidate: 2, Token: 7, Until: valid}, nil},
		},
		"after a leader that was killed": {
			{stepAct, request{Candidate: 1, Token: 5, Until: expired}, nil},
			{stepAct, request{Candidate: 2, Token: 7, Until: valid}, nil},
		},
		"two leaders at once": {
			{stepAct, request{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, request{Candidate: 2, Token: 7, Until: valid}, errTwoLeaders},
		},
		"two leaders with the same token": {
			{stepAct, request{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, request{Candidate: 2, Token: 5, Until: valid}, errTwoLeaders},
		},
		"too late": {
			{stepAct, request{Candidate: 1, Token: 5, Until: expired}, nil},
			{stepAct, request{Candidate: 2, Token: 7, Until: valid}, nil},
			{stepAct, request{Candidate: 1, Token: 5}, fence.ErrStale},
		},
		"a smaller token": {
			{stepAct, request{Candidate: 1, Token: 5, Until: expired}, nil},
			{stepAct, request{Candidate: 2, Token: 4, Until: valid}, errTokenOrder},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResource()
			for _, s := range steps {
				require.ErrorIs(t, r.apply(s.name, s.request), s.want)
			}
		})
	}
	require.ErrorContains(t, newResource().apply("dance", request{}), `no such step: "dance"`)
}

func TestResourceReportsALeaderThatActsBeforeItChecksItsTerm(t *testing.T) {
	r := newResource()
	q := request{Candidate: 1, Token: 5}
	require.NoError(t, r.apply(stepAct, q))
	require.NoError(t, r.apply(stepAct, request{Candidate: 2, Token: 7}))
	require.ErrorIs(t, r.apply(stepAct, q), fence.ErrStale)
	require.NoError(t, r.apply(stepLost, q))
	_, err := r.waitLost(t.Context(), q.Token)
	require.ErrorContains(t, err, "the leader with token 5 has acted before it found out")
}

func TestResourceRefusesATermThatBeginsAgain(t *testing.T) {
	r := newResource()
	q := request{Candidate: 1, Token: 5}
	for _, step := range []string{stepAct, stepResign, stepAct} {
		require.NoError(t, r.apply(step, q))
	}
	_, err := r.check()
	require.ErrorIs(t, err, errTokenOrder)
}
