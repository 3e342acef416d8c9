package chaos

import (
	"cmp"
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// How long servers are killed for.
const siege = time.Minute

func TestKillingTheLeaderAgainAndAgainNeverLetsTwoIn(t *testing.T) {
	realzk.Need(t)
	duration := siege
	if testing.Short() {
		duration /= 4
	}
	e := ensemble.Start(t, 3, ensemble.WithTick(200*time.Millisecond))
	var workers []*process
	for range 8 {
		workers = append(workers, startProcess(t, "contend", e.Connect()))
	}
	for _, w := range workers {
		w.says(t, 1)
	}
	kills := 0
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); kills++ {
		killLeader(t, e)
		progress(t, workers)
	}
	var history []turn
	for _, w := range workers {
		history = append(history, w.finish(t)...)
	}
	checkHistory(t, history)
	nothingLeft(t, e)
	t.Logf("%d holds, %d of them lost, %d leaders killed", len(history), lost(history), kills)
}

// killLeader kills the leader, and brings it back once another leads.
func killLeader(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	ctx := testzk.Context(t)
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.Kill())
	require.NoError(t, e.WaitReady(ctx))
	require.NoError(t, leader.Start(ctx))
	require.NoError(t, e.WaitReady(ctx))
}

// progress waits until every worker has had a turn since now.
func progress(t *testing.T, workers []*process) {
	t.Helper()
	for _, w := range workers {
		w.says(t, len(w.said())+1)
	}
}

// checkHistory checks that no two holds were valid at a time, and that tokens grow from hold to hold.
func checkHistory(t *testing.T, history []turn) {
	t.Helper()
	require.NotEmpty(t, history)
	slices.SortFunc(history, func(a, b turn) int { return cmp.Compare(a.Token, b.Token) })
	for i, later := range history[1:] {
		earlier := history[i]
		require.Less(t, earlier.Token, later.Token)
		require.LessOrEqual(t, earlier.To, later.From, "two valid holds at a time: %+v and %+v", earlier, later)
	}
}

func lost(history []turn) (n int) {
	for _, turn := range history {
		if turn.Lost != "" {
			n++
		}
	}
	return n
}

func nothingLeft(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	client := testzk.Connected(t, e.Connect())
	mu, err := mutex.New(client, lockPath)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		line, err := mu.Participants(testzk.Context(t))
		return err == nil && len(line) == 0
	}, "nodes are left in the line")
	hold, err := mu.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

func TestHistoryCheckFindsOverlapsAndRepeatedTokens(t *testing.T) {
	for name, history := range map[string][]turn{
		"overlap": {{Token: 1, From: 0, To: 20}, {Token: 2, From: 10, To: 30}},
		"inside":  {{Token: 1, From: 0, To: 30}, {Token: 2, From: 10, To: 20}},
		"token":   {{Token: 1, From: 0, To: 10}, {Token: 1, From: 20, To: 30}},
		"order":   {{Token: 2, From: 0, To: 10}, {Token: 1, From: 20, To: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := make(chan bool)
			go func() {
				probe := &testing.T{}
				defer func() { verdict <- probe.Failed() }()
				checkHistory(probe, history)
			}()
			require.True(t, <-verdict, "the check must fail")
		})
	}
}

func TestPausedHolderLearnsOfItsLossFromItsFirstQuestion(t *testing.T) {
	realzk.Need(t)
	e := ensemble.Start(t, 1, ensemble.WithTick(200*time.Millisecond))
	holder := startProcess(t, "ask", e.Connect())
	held := holder.says(t, 1)[0]
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGSTOP))

	client := testzk.Connected(t, e.Connect(), framework.WithSessionTimeout(6*time.Second))
	mu, err := mutex.New(client, lockPath)
	require.NoError(t, err)
	next, err := mu.Acquire(context.Background()) // once the servers have given the paused process up
	require.NoError(t, err)
	require.Greater(t, next.Token(), held.Token)

	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGCONT))
	answer := holder.says(t, 2)[1]
	require.Equal(t, "session lost", answer.Lost, "asked after a sleep of %v", answer.Asleep)
	require.Equal(t, "session lost", answer.Release)
	require.NoError(t, next.Err())
	require.NoError(t, next.Release())
	holder.finish(t)
	nothingLeft(t, e)
}
