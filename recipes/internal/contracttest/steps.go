package contracttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// simFixture is a fixture in virtual time.
type simFixture struct {
	*fixture
	srv *zktest.Server
}

// target is the name of the client whose requests meet faults.
const target = "target"

// inBubble returns a scenario that runs in a simFixture.
func inBubble(k Kind, scenario func(*simFixture)) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		scenario(&simFixture{newSimFixture(t, k, srv), srv})
	}
}

// eachRequest runs a scenario for the first request of target about the lock, then for the second,
// and so on. It stops when the scenario reports that no request was reached.
func eachRequest(t *testing.T, k Kind, scenario func(w *simFixture, nth fault.Match) (reached bool)) {
	for n := 0; ; n++ {
		reached := false
		t.Run(fmt.Sprintf("request %d", n+1), func(t *testing.T) {
			sim.Once(t, 1, inBubble(k, func(w *simFixture) {
				reached = scenario(w, fault.Match{Client: target, Path: w.path, Skip: n})
			}))
		})
		if !reached {
			require.Positive(t, n, "no request was reached")
			return
		}
	}
}

// settle waits until nothing more happens by itself.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// fires waits until a rule fires, and reports whether it did. It stops early when done is closed.
func fires(rule *fault.Rule, done <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fired := make(chan struct{})
	go func() {
		if rule.Wait(ctx) == nil {
			close(fired)
		}
	}()
	select {
	case <-fired:
	case <-done:
	case <-ctx.Done():
	}
	met := rule.Hits() > 0
	if !met {
		rule.Remove()
	}
	return met
}

// outlastSessions waits until all abandoned sessions have expired and all consequences are over.
func outlastSessions() {
	time.Sleep(3 * testzk.SessionTimeout)
	synctest.Wait()
}

// situation describes an acquire: whether the lock is busy, and by which call it is acquired.
type situation struct {
	busy bool
	try  bool
}

var situations = map[string]situation{
	"of a free lock":        {},
	"of a busy lock":        {busy: true},
	"of a free lock by try": {try: true},
}

// startAcquire starts the acquire of a situation.
func (w *simFixture) startAcquire(sit situation, c *framework.Client) *testlock.Attempt {
	w.t.Helper()
	if sit.try {
		return testlock.Start(w.t, w.lock(c).TryAcquire)
	}
	return w.start(w.lock(c))
}

// blocker returns the hold that keeps a busy lock busy, or nil.
func (w *simFixture) blocker(sit situation) *recipes.Hold {
	w.t.Helper()
	if !sit.busy {
		return nil
	}
	blocker := w.occupy(w.connect("blocker"))
	settle()
	return blocker
}

// patient makes operations retry for as long as the session lives.
var patient = framework.WithRetry(retry.Forever(100 * time.Millisecond))

// The caller cancels an acquire while a request or its reply is on the way.
func callerCancels(t *testing.T, k Kind) {
	for name, sit := range situations {
		for what, isReply := range map[string]bool{"request": false, "reply": true} {
			t.Run(name+" with the "+what+" on its way", func(t *testing.T) {
				t.Parallel()
				eachRequest(t, k, func(w *simFixture, nth fault.Match) bool { return w.cancelAt(sit, nth, isReply) })
			})
		}
	}
}

func (w *simFixture) cancelAt(sit situation, nth fault.Match, isReply bool) (reached bool) {
	blocker := w.blocker(sit)
	client, link := w.connect(target), w.srv.Client(target)
	session := w.session(client)
	rule := w.srv.On(nth, fault.Hold())
	a := w.startAcquire(sit, client)
	if !fires(rule, a.Done()) {
		return false
	}
	if isReply {
		link.CutReplies()
		rule.Release()
		synctest.Wait()
	}
	require.True(w.t, a.Waiting())
	reason := errors.New("canceled by the test")
	a.CancelWith(reason)
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	require.False(w.t, a.Waiting(), "a canceled acquire must not wait for silent servers")
	hold, err := a.Wait()
	require.Nil(w.t, hold)
	require.ErrorIs(w.t, err, context.Canceled)
	require.ErrorIs(w.t, err, reason)

	rule.Release()
	link.Heal()
	settle()
	require.Empty(w.t, w.owned(session.ID()), "left behind")
	require.NoError(w.t, session.Err(), "the session lives, so its end deleted nothing")
	w.checkFree(blocker)
	return true
}

// checkFree checks that the lock is free after the blocker's release, and that no nodes are left.
func (w *simFixture) checkFree(blocker *recipes.Hold) {
	w.t.Helper()
	next := w.start(w.rival(w.connect("next")))
	settle()
	if blocker != nil {
		require.NoError(w.t, blocker.Err())
		require.True(w.t, next.Waiting())
		w.release(blocker)
		settle()
	}
	require.False(w.t, next.Waiting(), "a conflicting node is left")
	w.release(won(w.t, next))
	w.empty()
}

// failure is what happens to a request. action applies when the request comes, the functions later.
type failure struct {
	action fault.Action
	after  func(*simFixture)
	mend   func(*simFixture) // called when the abandoned sessions have expired
	ends   bool              // the session ends
}

var faults = map[string]failure{
	"connection drops before":    {action: fault.DropBefore()},
	"connection drops after":     {action: fault.DropAfter()},
	"connection is reset before": {action: fault.Reset()},
	"reply is cut short":         {action: fault.Truncate(6)},
	"request is late":            {action: fault.Delay(testzk.SessionTimeout / 2)},
	"session expires": {action: fault.Hold(), ends: true, after: func(w *simFixture) {
		for _, session := range w.srv.Client(target).Sessions() {
			require.NoError(w.t, session.Expire())
		}
	}},
	"nothing gets through": {action: fault.Hold(), ends: true,
		after: func(w *simFixture) { w.srv.Client(target).Cut() },
		mend:  func(w *simFixture) { w.srv.Client(target).Heal() }},
	"no reply gets through": {action: fault.Hold(), ends: true,
		after: func(w *simFixture) { w.srv.Client(target).CutReplies() },
		mend:  func(w *simFixture) { w.srv.Client(target).Heal() }},
}

// applyRest applies the rest of a fault, after rule has fired, and waits for its consequences.
func (w *simFixture) applyRest(f failure, rule *fault.Rule) {
	if f.after != nil {
		f.after(w)
	}
	rule.Release()
	outlastSessions()
	if f.mend != nil {
		f.mend(w)
		outlastSessions()
	}
}

// A client with retries acquires the lock despite any fault. One without retries acquires it or
// fails.
func troubleWhileAcquiring(t *testing.T, k Kind) {
	for name, sit := range situations {
		for what, f := range faults {
			t.Run(name+" when "+what, func(t *testing.T) {
				t.Parallel()
				eachRequest(t, k, func(w *simFixture, nth fault.Match) bool { return w.acquiresDespite(sit, nth, f) })
			})
		}
		t.Run(name+" without retries", func(t *testing.T) {
			t.Parallel()
			eachRequest(t, k, func(w *simFixture, nth fault.Match) bool { return w.failsCleanly(sit, nth) })
		})
	}
}

func (w *simFixture) acquiresDespite(sit situation, nth fault.Match, f failure) (reached bool) {
	blocker := w.blocker(sit)
	client := w.connect(target, patient)
	former := w.session(client)
	rule := w.srv.On(nth, f.action)
	a := w.startAcquire(sit, client)
	if !fires(rule, a.Done()) {
		return false
	}
	w.applyRest(f, rule)
	require.Equal(w.t, f.ends, former.Err() != nil, "%v", former.Err())
	if blocker != nil {
		require.NoError(w.t, blocker.Err())
		require.True(w.t, a.Waiting(), "the lock is held")
		require.Len(w.t, w.owned(w.session(client).ID()), w.shape.waiting)
		w.release(blocker)
	}
	if f.ends && w.wasGranted(a) {
		w.checkFree(nil)
		return true
	}
	w.holdsOnce(client, won(w.t, a))
	w.checkFree(nil)
	return true
}

// wasGranted reports whether the lock was acquired before the fault met the request, because the
// reply was not needed. That is so for the list after the first create in a directory. The hold has
// ended with the session then.
func (w *simFixture) wasGranted(a *testlock.Attempt) bool {
	w.t.Helper()
	hold, err := a.Wait()
	if err != nil || hold.Err() == nil {
		return false
	}
	require.ErrorIs(w.t, hold.Err(), framework.ErrSessionLost)
	require.ErrorIs(w.t, hold.Release(), framework.ErrSessionLost)
	return true
}

// holdsOnce checks that the hold has exactly its own nodes, and releases it.
func (w *simFixture) holdsOnce(c *framework.Client, hold *recipes.Hold) {
	w.t.Helper()
	settle()
	require.NoError(w.t, hold.Err())
	own := w.owned(w.session(c).ID())
	require.Len(w.t, own, w.shape.held, "nodes of one hold")
	require.Len(w.t, w.heldNodes(w.shape.held), len(own)+len(w.fillers)*w.shape.held, "no nodes of other holders")
	var czxids []int64
	for _, node := range own {
		stat, err := w.stat(node)
		require.NoError(w.t, err)
		czxids = append(czxids, stat.czxid)
	}
	require.Contains(w.t, czxids, latestToken(hold), "the token is the czxid of a node, even if it had to be read")
	w.release(hold)
}

func (w *simFixture) failsCleanly(sit situation, nth fault.Match) (reached bool) {
	blocker := w.blocker(sit)
	client := w.connect(target, framework.WithRetry(retry.Never()))
	rule := w.srv.On(nth, fault.DropAfter())
	a := w.startAcquire(sit, client)
	if !fires(rule, a.Done()) {
		return false
	}
	outlastSessions()
	if blocker != nil && a.Waiting() {
		w.release(blocker)
		blocker = nil
	}
	hold, err := a.Wait()
	if err == nil {
		w.holdsOnce(client, hold)
	} else {
		require.True(w.t, framework.IsTransient(err), "%v", err)
		require.Nil(w.t, hold)
		require.NotErrorIs(w.t, err, recipes.ErrNotAcquired)
		require.NotErrorIs(w.t, err, context.Canceled)
		require.Empty(w.t, w.owned(w.session(client).ID()), "left behind")
	}
	w.checkFree(blocker)
	return true
}

// The hold is valid when Release is called. A fault during the release is no loss.
func troubleWhileReleasing(t *testing.T, k Kind) {
	for what, f := range faults {
		t.Run("when "+what, func(t *testing.T) {
			t.Parallel()
			eachRequest(t, k, func(w *simFixture, nth fault.Match) bool { return w.releasesDespite(nth, f) })
		})
	}
}

func (w *simFixture) releasesDespite(nth fault.Match, f failure) (reached bool) {
	client := w.connect(target, patient)
	hold := w.acquire(w.lock(client))
	settle()
	rule := w.srv.On(nth, f.action)
	began := time.Now()
	var took time.Duration
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = hold.Release()
		took = time.Since(began)
	}()
	if !fires(rule, done) {
		return false
	}
	require.ErrorIs(w.t, hold.Err(), recipes.ErrNotHeld)
	w.applyRest(f, rule)
	<-done
	require.LessOrEqual(w.t, took, testzk.SessionTimeout+time.Second)
	if f.ends && err != nil {
		require.ErrorIs(w.t, err, recipes.ErrReleasePending)
		require.NotErrorIs(w.t, err, framework.ErrSessionLost, "the hold was valid until it was released")
	} else {
		require.NoError(w.t, err)
	}
	require.ErrorIs(w.t, hold.Release(), recipes.ErrNotHeld)
	w.checkFree(nil)
	return true
}

// The session lives, but all requests about the lock fail for longer than the session timeout.
func releaseIsFinishedLater(t *testing.T, k Kind) {
	sim.Once(t, 1, inBubble(k, func(w *simFixture) {
		client := w.connect(target, patient)
		session := w.session(client)
		hold := w.acquire(w.lock(client))
		settle()
		rule := w.srv.On(fault.Match{Client: target, Path: w.path, Times: fault.Always}, fault.DropBefore())
		began := time.Now()
		require.ErrorIs(w.t, hold.Release(), recipes.ErrReleasePending)
		require.InDelta(w.t, testzk.SessionTimeout, time.Since(began), float64(time.Second))
		require.Len(w.t, w.owned(session.ID()), w.shape.held)
		rule.Remove()
		outlastSessions()
		require.Empty(w.t, w.owned(session.ID()))
		require.NoError(w.t, session.Err(), "the session lives, so its end deleted nothing")
		w.checkFree(nil)
	}))
}
