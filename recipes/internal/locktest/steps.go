package locktest

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
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// world is a stage in virtual time.
type world struct {
	*stage
	srv *zktest.Server
}

// me is the name of the client whose requests meet with something.
const me = "me"

// inBubble makes a scenario of one on a stage.
func inBubble(k Kind, scenario func(*world)) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		scenario(&world{newSimStage(t, k, srv), srv})
	}
}

// eachRequest runs a scenario for the first request that me sends about the lock, the second, and so on, until it reports that there was
// no such request.
func eachRequest(t *testing.T, k Kind, scenario func(w *world, nth zktest.Match) (reached bool)) {
	for n := 0; ; n++ {
		reached := false
		t.Run(fmt.Sprintf("request %d", n+1), func(t *testing.T) {
			sim.Once(t, 1, inBubble(k, func(w *world) {
				reached = scenario(w, zktest.Match{Client: me, Path: w.path, Skip: n})
			}))
		})
		if !reached {
			require.Positive(t, n, "no request was reached")
			return
		}
	}
}

// settle lets everything happen that happens by itself.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// meets waits until a rule fires for what ends with done, and reports false if it does not.
func meets(rule *zktest.Rule, done <-chan struct{}) bool {
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

// outlast lets all sessions expire that nobody keeps alive, and everything be done that follows.
func outlast() {
	time.Sleep(3 * testzk.SessionTimeout)
	synctest.Wait()
}

// situation is what an acquire comes upon, and how it is made.
type situation struct {
	busy bool
	try  bool
}

var situations = map[string]situation{
	"of a free lock":        {},
	"of a busy lock":        {busy: true},
	"of a free lock by try": {try: true},
}

// acquires begins the acquire, when all is as it is to be.
func (w *world) acquires(sit situation, c *framework.Client) *attempt {
	w.t.Helper()
	if sit.try {
		return w.begin(w.lock(c).TryAcquire)
	}
	return w.start(w.lock(c))
}

// blocker is the hold that a busy lock is kept busy by, else nil.
func (w *world) blocker(sit situation) *recipes.Hold {
	w.t.Helper()
	if !sit.busy {
		return nil
	}
	blocker := w.occupy(w.connect("blocker"))
	settle()
	return blocker
}

// whatever waits for nobody, in a session that lives on.
var patient = framework.WithRetry(retry.Forever(100 * time.Millisecond))

// The caller of an acquire leaves while a request, or its reply, is on its way.
func callerLeaves(t *testing.T, k Kind) {
	for name, sit := range situations {
		for what, isReply := range map[string]bool{"request": false, "reply": true} {
			t.Run(name+" with the "+what+" on its way", func(t *testing.T) {
				t.Parallel()
				eachRequest(t, k, func(w *world, nth zktest.Match) bool { return w.leave(sit, nth, isReply) })
			})
		}
	}
}

func (w *world) leave(sit situation, nth zktest.Match, isReply bool) (reached bool) {
	blocker := w.blocker(sit)
	client, link := w.connect(me), w.srv.Client(me)
	session := w.session(client)
	rule := w.srv.On(nth, zktest.Hold())
	a := w.acquires(sit, client)
	if !meets(rule, a.done) {
		return false
	}
	if isReply {
		link.CutReplies()
		rule.Release()
		synctest.Wait()
	}
	require.True(w.t, a.waiting())
	reason := errors.New("changed my mind")
	a.cancel(reason)
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	require.False(w.t, a.waiting(), "it must not wait for servers that do not answer")
	hold, err := a.wait()
	require.Nil(w.t, hold)
	require.ErrorIs(w.t, err, context.Canceled)
	require.ErrorIs(w.t, err, reason)

	rule.Release()
	link.Heal()
	settle()
	require.Empty(w.t, w.owned(session.ID()), "left behind")
	require.NoError(w.t, session.Err(), "the session lives, and took nothing along")
	w.goesOn(blocker)
	return true
}

// goesOn checks that the lock is free, once the blocker has released, and that nothing is left of anybody.
func (w *world) goesOn(blocker *recipes.Hold) {
	w.t.Helper()
	next := w.start(w.rival(w.connect("next")))
	settle()
	if blocker != nil {
		require.NoError(w.t, blocker.Err())
		require.True(w.t, next.waiting())
		w.release(blocker)
		settle()
	}
	require.False(w.t, next.waiting(), "something is in the way")
	w.release(next.won(w.t))
	w.empty()
}

// fault is what a request meets with. The action is done when it comes, the rest afterwards.
type fault struct {
	action zktest.Action
	after  func(*world)
	mend   func(*world) // when all sessions are over that are not to live
	over   bool         // the session ends
}

var faults = map[string]fault{
	"connection drops before":    {action: zktest.DropBefore()},
	"connection drops after":     {action: zktest.DropAfter()},
	"connection is reset before": {action: zktest.Reset()},
	"reply is cut short":         {action: zktest.Truncate(6)},
	"request is late":            {action: zktest.Delay(testzk.SessionTimeout / 2)},
	"session expires": {action: zktest.Hold(), over: true, after: func(w *world) {
		for _, session := range w.srv.Client(me).Sessions() {
			require.NoError(w.t, session.Expire())
		}
	}},
	"nothing gets through": {action: zktest.Hold(), over: true,
		after: func(w *world) { w.srv.Client(me).Cut() },
		mend:  func(w *world) { w.srv.Client(me).Heal() }},
	"no reply gets through": {action: zktest.Hold(), over: true,
		after: func(w *world) { w.srv.Client(me).CutReplies() },
		mend:  func(w *world) { w.srv.Client(me).Heal() }},
}

// strikes lets a fault happen that a rule has begun, and its consequences.
func (w *world) strikes(f fault, rule *zktest.Rule) {
	if f.after != nil {
		f.after(w)
	}
	rule.Release()
	outlast()
	if f.mend != nil {
		f.mend(w)
		outlast()
	}
}

// A client that repeats things gets the lock through everything; one that does not gets it or fails.
func troubleWhileAcquiring(t *testing.T, k Kind) {
	for name, sit := range situations {
		for what, f := range faults {
			t.Run(name+" when "+what, func(t *testing.T) {
				t.Parallel()
				eachRequest(t, k, func(w *world, nth zktest.Match) bool { return w.getsThrough(sit, nth, f) })
			})
		}
		t.Run(name+" without retries", func(t *testing.T) {
			t.Parallel()
			eachRequest(t, k, func(w *world, nth zktest.Match) bool { return w.failsCleanly(sit, nth) })
		})
	}
}

func (w *world) getsThrough(sit situation, nth zktest.Match, f fault) (reached bool) {
	blocker := w.blocker(sit)
	client := w.connect(me, patient)
	former := w.session(client)
	rule := w.srv.On(nth, f.action)
	a := w.acquires(sit, client)
	if !meets(rule, a.done) {
		return false
	}
	w.strikes(f, rule)
	require.Equal(w.t, f.over, former.Err() != nil, "%v", former.Err())
	if blocker != nil {
		require.NoError(w.t, blocker.Err())
		require.True(w.t, a.waiting(), "the lock is held: %v", a.err)
		require.Len(w.t, w.owned(w.session(client).ID()), w.shape.waiting)
		w.release(blocker)
	}
	if f.over && w.wasGranted(a) {
		w.goesOn(nil)
		return true
	}
	w.holdsOnce(client, a.won(w.t))
	w.goesOn(nil)
	return true
}

// wasGranted reports whether the lock was acquired before the request met with its fault, because the answer to that was not needed: the
// list behind the first create in a directory. The hold has ended with the session then.
func (w *world) wasGranted(a *attempt) bool {
	w.t.Helper()
	hold, err := a.wait()
	if err != nil || hold.Err() == nil {
		return false
	}
	require.ErrorIs(w.t, hold.Err(), framework.ErrSessionLost)
	require.ErrorIs(w.t, hold.Release(), framework.ErrSessionLost)
	return true
}

// holdsOnce checks and releases a hold.
func (w *world) holdsOnce(c *framework.Client, hold *recipes.Hold) {
	w.t.Helper()
	settle()
	require.NoError(w.t, hold.Err())
	own := w.owned(w.session(c).ID())
	require.Len(w.t, own, w.shape.held, "nodes of one hold")
	require.Len(w.t, w.settled(w.shape.held), len(own)+len(w.fillers)*w.shape.held, "of nobody else")
	var czxids []int64
	for _, node := range own {
		stat, err := w.stat(node)
		require.NoError(w.t, err)
		czxids = append(czxids, stat.czxid)
	}
	require.Contains(w.t, czxids, hold.Token(), "the token is a node's czxid, also when it had to be looked up")
	w.release(hold)
}

func (w *world) failsCleanly(sit situation, nth zktest.Match) (reached bool) {
	blocker := w.blocker(sit)
	client := w.connect(me, framework.WithRetry(retry.Never()))
	rule := w.srv.On(nth, zktest.DropAfter())
	a := w.acquires(sit, client)
	if !meets(rule, a.done) {
		return false
	}
	outlast()
	if blocker != nil && a.waiting() {
		w.release(blocker)
		blocker = nil
	}
	hold, err := a.wait()
	if err == nil {
		w.holdsOnce(client, hold)
	} else {
		require.True(w.t, framework.IsTransient(err), "%v", err)
		require.Nil(w.t, hold)
		require.NotErrorIs(w.t, err, recipes.ErrNotAcquired)
		require.NotErrorIs(w.t, err, context.Canceled)
		require.Empty(w.t, w.owned(w.session(client).ID()), "left behind")
	}
	w.goesOn(blocker)
	return true
}

// A release was asked for while the hold was valid: whatever happens to it is no loss.
func troubleWhileReleasing(t *testing.T, k Kind) {
	for what, f := range faults {
		t.Run("when "+what, func(t *testing.T) {
			t.Parallel()
			eachRequest(t, k, func(w *world, nth zktest.Match) bool { return w.letsGo(nth, f) })
		})
	}
}

func (w *world) letsGo(nth zktest.Match, f fault) (reached bool) {
	client := w.connect(me, patient)
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
	if !meets(rule, done) {
		return false
	}
	require.ErrorIs(w.t, hold.Err(), recipes.ErrNotHeld)
	w.strikes(f, rule)
	<-done
	require.LessOrEqual(w.t, took, testzk.SessionTimeout+time.Second)
	if f.over && err != nil {
		require.ErrorIs(w.t, err, recipes.ErrReleasePending)
		require.NotErrorIs(w.t, err, framework.ErrSessionLost, "the hold was valid until it was released")
	} else {
		require.NoError(w.t, err)
	}
	require.ErrorIs(w.t, hold.Release(), recipes.ErrNotHeld)
	w.goesOn(nil)
	return true
}

// The session lives, but nothing about the lock gets through for longer than it would last.
func releaseIsFinishedLater(t *testing.T, k Kind) {
	sim.Once(t, 1, inBubble(k, func(w *world) {
		client := w.connect(me, patient)
		session := w.session(client)
		hold := w.acquire(w.lock(client))
		settle()
		rule := w.srv.On(zktest.Match{Client: me, Path: w.path, Times: zktest.Always}, zktest.DropBefore())
		began := time.Now()
		require.ErrorIs(w.t, hold.Release(), recipes.ErrReleasePending)
		require.InDelta(w.t, testzk.SessionTimeout, time.Since(began), float64(time.Second))
		require.Len(w.t, w.owned(session.ID()), w.shape.held)
		rule.Remove()
		outlast()
		require.Empty(w.t, w.owned(session.ID()))
		require.NoError(w.t, session.Err(), "the session lives, and took nothing along")
		w.goesOn(nil)
	}))
}
