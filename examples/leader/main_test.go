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

	"github.com/docent-zk/docent/examples/internal/crew"
	"github.com/docent-zk/docent/examples/internal/crewtest"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/internal/testzk"
)

// brokenEnv makes the candidates of this test binary hold office for a second time, by an election that nobody else takes part in.
const brokenEnv = "DOCENT_LEADER_BROKEN"

func TestMain(m *testing.M) {
	switch {
	case crew.IsMember() && os.Getenv(brokenEnv) != "":
		os.Exit(crew.Main(os.Stdin, os.Stderr, "candidate", func(ctx context.Context, j job) error {
			usurper := j
			usurper.Path += "-" + strconv.Itoa(j.Number)
			go func() { _ = candidacy(ctx, usurper) }()
			return candidacy(ctx, j)
		}))
	case crew.IsMember():
		os.Exit(candidateMain())
	}
	testzk.Widen()
	os.Exit(m.Run())
}

func parsed(t *testing.T, args string) *config {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c := newConfig(flags)
	require.NoError(t, flags.Parse(strings.Fields(args)))
	return c
}

func TestStory(t *testing.T) {
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
		if !crew.CanPause && regexp.MustCompile(`PAUSED|RESUMED|finds out`).MatchString(want) {
			continue
		}
		place := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNil(t, place, "%s is not in its place:\n%s", want, text)
		rest = rest[place[1]:]
	}
	crewtest.NobodyInLine(t, server, crewtest.Story(t, server))
}

func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"is candidate 2", "RESIGNS", "KILLED", "PAUSED", "RESUMED"} {
		if !crew.CanPause && strings.HasSuffix(moment, "ED") && moment != "KILLED" {
			continue
		}
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			crewtest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
				return parsed(t, "-session 10s").run(ctx, server.Connect(), out)
			})
			crewtest.NobodyInLine(t, server, crewtest.Story(t, server))
		})
	}
}

func TestCandidateThatDiesByItselfFailsTheStory(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	out := crewtest.Trigger(`Process (\d+) is candidate 3`, func(groups []string) {
		pid, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
	})
	require.ErrorContains(t, parsed(t, "-session 10s").run(t.Context(), server.Connect(), out), "process 3 has ended")
}

// A detector that never fires is worth nothing.
func TestBrokenElectionFailsTheStory(t *testing.T) {
	t.Setenv(brokenEnv, "1")
	server := testzk.Own(t, testzk.Seldom)
	var out bytes.Buffer
	err := parsed(t, "-session 10s").run(t.Context(), server.Connect(), &out)
	require.ErrorContains(t, err, "BROKEN", "%s", &out)
	require.NotContains(t, out.String(), "what it promises")
}

func TestStoryThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	c := parsed(t, "-session 10s")
	c.limit = 500 * time.Millisecond
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

func TestWitness(t *testing.T) {
	valid, over := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	type step struct {
		name string
		visit
		want error
	}
	for name, steps := range map[string][]step{
		"one after the other": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, visit{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepResign, visit{Candidate: 1, Token: 5}, nil},
			{stepAct, visit{Candidate: 2, Token: 7, Until: valid}, nil},
		},
		"after one that was killed": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: over}, nil},
			{stepAct, visit{Candidate: 2, Token: 7, Until: valid}, nil},
		},
		"two at once": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, visit{Candidate: 2, Token: 7, Until: valid}, errTwoLeaders},
		},
		"two with the same token": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: valid}, nil},
			{stepAct, visit{Candidate: 2, Token: 5, Until: valid}, errTwoLeaders},
		},
		"too late": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: over}, nil},
			{stepAct, visit{Candidate: 2, Token: 7, Until: valid}, nil},
			{stepAct, visit{Candidate: 1, Token: 5}, fence.ErrStale},
		},
		"a smaller token": {
			{stepAct, visit{Candidate: 1, Token: 5, Until: over}, nil},
			{stepAct, visit{Candidate: 2, Token: 4, Until: valid}, errTokenOrder},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness()
			for _, s := range steps {
				require.ErrorIs(t, w.apply(s.name, s.visit), s.want)
			}
		})
	}
	require.ErrorContains(t, newWitness().apply("dance", visit{}), `no such step: "dance"`)
}

func TestWitnessFindsOutWhoActsBeforeAsking(t *testing.T) {
	w := newWitness()
	v := visit{Candidate: 1, Token: 5}
	require.NoError(t, w.apply(stepAct, v))
	require.NoError(t, w.apply(stepAct, visit{Candidate: 2, Token: 7}))
	require.ErrorIs(t, w.apply(stepAct, v), fence.ErrStale)
	require.NoError(t, w.apply(stepLost, v))
	_, err := w.hasLost(t.Context(), v.Token)
	require.ErrorContains(t, err, "the leader with token 5 has acted before it found out")
}

func TestWitnessDoesNotTakeATermTwice(t *testing.T) {
	w := newWitness()
	v := visit{Candidate: 1, Token: 5}
	for _, step := range []string{stepAct, stepResign, stepAct} {
		require.NoError(t, w.apply(step, v))
	}
	_, err := w.conclude()
	require.ErrorIs(t, err, errTokenOrder)
}
