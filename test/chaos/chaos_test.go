package chaos

import (
	"context"
	"math"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// killing is how long leaders are killed for.
const killing = 10 * time.Second

// crowds says how many workers of each role there are.
var crowds = map[string]int{"contend": 8, "elect": 3, "latch": 3}

// leaderless is how long elections and latches may have no leader after the servers are ready: the session
// timeout and two seconds, and ten times these two because the machine may be busy.
const leaderless = sessionTimeout + 20*time.Second

func TestNoTwoHoldsAreValidWhenLeadersAreKilled(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	e := ensemble.Start(t, 3, ensemble.WithTick(200*time.Millisecond))
	workers := map[string][]*process{}
	for role, n := range crowds {
		for range n {
			workers[role] = append(workers[role], startProcess(t, role, e.Connect()))
		}
	}
	progress(t, workers)
	kills := 0
	var ready []int64
	for deadline := time.Now().Add(killing); time.Now().Before(deadline); kills++ {
		ready = append(ready, killLeader(t, e)...)
		progress(t, workers)
	}
	t.Logf("%d leaders killed", kills)
	for role, crowd := range workers {
		history := finish(t, crowd...)
		checkHistory(t, history)
		t.Logf("%s: %d turns, %d of them lost", role, len(history), lost(history))
		if role != "contend" {
			t.Logf("%s: there is a leader at most %v after the servers are ready", role, checkLed(t, history, ready))
		}
	}
	nothingLeft(t, e)
}

// killLeader kills the leader, and starts it again when there is another one. It returns when the
// servers were ready: before that start, and after.
func killLeader(t *testing.T, e *ensemble.Ensemble) (ready []int64) {
	t.Helper()
	ctx := testzk.Context(t)
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.Kill())
	require.NoError(t, e.WaitReady(ctx))
	ready = append(ready, now())
	_, err = startRepaired(t.Context(), leader, filepath.Join(t.TempDir(), "damaged"))
	require.NoError(t, err)
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	return append(ready, now())
}

// progress waits until every worker has had a turn since now.
func progress(t *testing.T, workers map[string][]*process) {
	t.Helper()
	for _, crowd := range workers {
		for _, w := range crowd {
			w.says(t, len(w.said())+1)
		}
	}
}

// checkHistory checks that no two holds were valid at a time, and that tokens grow from hold to hold.
func checkHistory(t *testing.T, history []turn) {
	t.Helper()
	require.NotEmpty(t, history)
	require.NoError(t, newLockHistory().add(history))
}

// checkLed checks that there was a leader soon after each of the moments, and returns the longest time without.
func checkLed(t *testing.T, history []turn, moments []int64) (longest time.Duration) {
	t.Helper()
	for _, moment := range moments {
		took := time.Duration(math.MaxInt64)
		for _, turn := range history {
			if turn.To >= moment {
				took = min(took, max(0, time.Duration(turn.From-moment)))
			}
		}
		require.LessOrEqual(t, took, leaderless, "no leader after %v", time.Duration(moment))
		longest = max(longest, took)
	}
	return longest
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
	}, "nodes are left in the queue")
	hold, err := mu.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	election, err := leader.New(client, electionPath)
	require.NoError(t, err)
	latch, err := leader.NewLatch(client, latchPath)
	require.NoError(t, err)
	for path, participants := range map[string]func(context.Context) ([]recipes.Participant, error){
		electionPath: election.Participants, latchPath: latch.Participants,
	} {
		testzk.Eventually(t, func() bool {
			candidates, err := participants(testzk.Context(t))
			return err == nil && len(candidates) == 0
		}, "candidates are left in %s", path)
	}
}

func TestHistoryCheckFindsOverlapsAndRepeatedTokens(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawings
	for name, history := range map[string][]turn{
		"overlap": {{Token: 1, From: 0, To: 20}, {Token: 2, From: 10, To: 30}},
		"inside":  {{Token: 1, From: 0, To: 30}, {Token: 2, From: 10, To: 20}},
		"token":   {{Token: 1, From: 0, To: 10}, {Token: 1, From: 20, To: 30}},
		"order":   {{Token: 2, From: 0, To: 10}, {Token: 1, From: 20, To: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, fails(func(t *testing.T) { checkHistory(t, history) }), "the check must fail")
		})
	}
}

func TestCheckOfLeadersFindsATimeWithoutALeader(t *testing.T) {
	second := int64(time.Second)
	late := int64(leaderless) + 3*second
	for name, example := range map[string]struct {
		history []turn
		fails   bool
	}{
		"goes on":       {[]turn{{From: 1, To: 5 * second}}, false},
		"next one":      {[]turn{{From: 1, To: second}, {From: 4 * second, To: 5 * second}}, false},
		"next one late": {[]turn{{From: 1, To: second}, {From: late, To: late + second}}, true},
		"none any more": {[]turn{{From: 1, To: second}}, true},
		"lost at once":  {[]turn{{From: 3 * second}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			led := func(t *testing.T) { checkLed(t, example.history, []int64{2 * second}) }
			require.Equal(t, example.fails, fails(led))
		})
	}
}

// fails says whether a check fails the test that it is part of.
func fails(check func(t *testing.T)) bool {
	verdict := make(chan bool)
	go func() {
		probe := &testing.T{}
		defer func() { verdict <- probe.Failed() }()
		check(probe)
	}()
	return <-verdict
}

func TestPausedHolderFindsItsLossInItsFirstCall(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	e := ensemble.Start(t, 1, ensemble.WithTick(200*time.Millisecond))
	holder := startProcess(t, "ask", e.Connect())
	held := holder.says(t, 1)[0]
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGSTOP))

	mu, err := mutex.New(testzk.Connected(t, e.Connect()), lockPath)
	require.NoError(t, err)
	next, err := mu.Acquire(context.Background()) // when the servers have expired the session of the paused process
	require.NoError(t, err)
	require.Greater(t, next.Token(), held.Token)

	resumed := now()
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGCONT))
	answer := holder.says(t, 2)[1]
	require.Less(t, answer.To, resumed, "a call after the pause has found the hold valid")
	require.Equal(t, "session lost", answer.Lost)
	require.Equal(t, "session lost", answer.Release)
	require.NoError(t, next.Err())
	require.NoError(t, next.Release())
	finish(t, holder)
	nothingLeft(t, e)
}
