package ownership

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
)

// lent is a lock of another service, until its lost is closed.
type lent struct {
	lost    chan struct{}
	refuses error // what Release returns
	logs    *observer.ObservedLogs
	starts  func(fn func()) // starts the background; nil: at once
}

func (l *lent) hold(key any) *Hold {
	core, logs := observer.New(zapcore.InfoLevel)
	l.lost, l.logs = make(chan struct{}), logs
	end := time.Now().Add(time.Hour)
	return NewForeign(Foreign{
		Name: "there", Token: 7, Key: key, Lost: l.lost, Until: func() time.Time { return end },
		Release: func(context.Context) error { return l.refuses }, Within: time.Second,
		Go: func(fn func()) bool {
			if l.starts != nil {
				l.starts(fn)
				return true
			}
			go fn()
			return true
		},
		Log: zap.New(core), Metrics: &testzk.Metrics{},
	})
}

func TestOnlyALostLockThatIsNotReleasedIsLogged(t *testing.T) {
	for name, refuses := range map[string]error{"released": nil, "not released": errors.New("refused")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lent{refuses: refuses}
				h := l.hold(nil)
				close(l.lost)
				<-h.Done()
				synctest.Wait()
				require.ErrorIs(t, h.Err(), ErrForeignLost)
				require.Equal(t, refuses != nil, l.logs.FilterMessageSnippet("could not be released").Len() == 1)
				require.Equal(t, 1, l.logs.FilterMessage("hold ended").Len())
			})
		})
	}
}

// A log may block, and a program may ask for the error of a hold before each of its steps.
func TestErrLeavesTheLogOfALossToTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var monitor func()
		late := &lent{starts: func(fn func()) { monitor = fn }}
		part, other := late.hold(nil), (&lent{}).hold(nil)
		late.starts = nil
		whole := Combine(nil, part, other)
		close(late.lost)
		require.ErrorIs(t, whole.Err(), ErrForeignLost)
		require.ErrorIs(t, part.Release(), ErrForeignLost)
		require.True(t, isClosed(whole.Done()))
		synctest.Wait()
		require.Zero(t, late.logs.Len(), "logged by what asks for the error")
		require.NoError(t, other.Err(), "released by what asks for the error")
		monitor()
		synctest.Wait()
		require.ErrorIs(t, other.Err(), ErrNotHeld)
		require.Equal(t, 1, late.logs.FilterMessage("hold ended").Len())
	})
}

// A program can make a context for each of its requests while it holds a lock for days.
func TestContextThatHasEndedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := (&lent{}).hold(nil)
		parent, cancel := context.WithCancel(t.Context())
		ended, lives := h.Context(parent), h.Context(t.Context())
		require.Len(t, h.cancels, 2)
		cancel()
		<-ended.Done()
		synctest.Wait()
		require.Len(t, h.cancels, 1)
		require.NoError(t, h.Release())
		require.ErrorIs(t, context.Cause(lives), ErrNotHeld)
	})
}

// The hold can be released between the check of a guarded transaction and its begin.
func TestNoGuardBeginsAfterTheEndOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := (&lent{}).hold(nil), (&lent{}).hold(nil)
		h := Combine(nil, first, second)
		done, ok := h.startGuards()
		require.True(t, ok)
		require.Equal(t, 1, first.owned.guards)
		done(nil)
		require.Zero(t, first.owned.guards)
		require.NoError(t, h.Release())
		_, ok = h.startGuards()
		require.False(t, ok)
		require.Zero(t, first.owned.guards)
	})
}

func TestHoldKnowsWhetherItIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := (&lent{}).hold("key")
		require.False(t, h.HasOthers())
		other, ok := Reenter(h.Context(t.Context()), "key")
		require.True(t, ok)
		require.True(t, h.HasOthers())
		require.True(t, other.HasOthers())
		wait, ok := h.StartReleaseAlone()
		require.False(t, ok)
		require.Nil(t, wait)
		require.NoError(t, h.Err(), "the hold goes on")
		require.NoError(t, other.Release())
		require.False(t, h.HasOthers())
		wait, ok = h.StartReleaseAlone()
		require.True(t, ok)
		require.NoError(t, call(wait))
		require.ErrorIs(t, h.Err(), ErrNotHeld)
		wait, ok = h.StartReleaseAlone()
		require.True(t, ok, "there is nothing to go on with")
		require.ErrorIs(t, call(wait), ErrNotHeld)
	})
}

func TestHoldIsOnlyOfItsOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.False(t, (*Hold)(nil).IsOnlyOf(nil))
		require.False(t, (&Hold{}).IsOnlyOf(nil))
		first, second := (&lent{}).hold("first"), (&lent{}).hold("second")
		require.True(t, first.IsOnlyOf("first"))
		require.False(t, first.IsOnlyOf("second"))
		h := Combine(nil, first, second)
		require.False(t, h.IsOnlyOf("first"))
		require.NoError(t, h.Release())
		require.True(t, first.IsOnlyOf("first"), "readable after the release")
	})
}

func TestCombinedHoldIsNotRequestedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Combine(nil, (&lent{}).hold("a"), (&lent{}).hold("b"))
		require.False(t, isClosed(h.Revoked()))
		require.NoError(t, h.Release())
	})
}

func TestOnlyOneHoldOfAllLocksIsReentered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := (&lent{}).hold("a"), (&lent{}).hold("b")
		reenter := func(ctx context.Context, keys ...any) (*Hold, bool) { return ReenterAll(ctx, keys) }
		none, first, second := t.Context(), a.Context(t.Context()), b.Context(t.Context())
		for name, test := range map[string]struct {
			ctx  context.Context
			some bool
		}{
			"none": {none, false}, "the first": {first, true}, "the second": {second, true},
			"both by themselves": {b.Context(first), true},
		} {
			hold, some := reenter(test.ctx, "a", "b")
			require.Nil(t, hold, name)
			require.Equal(t, test.some, some, name)
		}
		whole := Combine("all", a, b)
		both := whole.Context(t.Context())
		hold, some := reenter(both, "a", "b", "c")
		require.Nil(t, hold)
		require.True(t, some)
		hold, some = reenter(both, "a", "b")
		require.True(t, some)
		require.NotNil(t, hold)
		require.NoError(t, whole.Release())
		require.NoError(t, hold.Err(), "it is another hold of both")
		require.NoError(t, hold.Release())
		require.ErrorIs(t, a.Err(), ErrNotHeld)
	})
}

// The hold can be released between the look at the context and the new hold.
func TestEndedHoldIsNotEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := (&lent{}).hold("key")
		require.NoError(t, h.Release())
		other, ok := h.owned.enter(h)
		require.False(t, ok)
		require.Nil(t, other)
	})
}

// passing is a Handoff that passes the first hold on, and counts the requests.
type passing struct {
	next      *Hold // what was passed on
	requested int
}

func (p *passing) Next(h *Hold) Decision {
	if p.next != nil {
		return Delete
	}
	p.next = h
	return Passed
}

func (p *passing) Requested() { p.requested++ }
func (p *passing) Ended()     {}

func TestHandoffIsRequestedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := (&lent{}).hold("key"), &passing{}
		h.SetHandoff(p)
		h.owned.request()
		h.owned.request()
		require.Equal(t, 1, p.requested)
		require.NoError(t, h.Release())
		require.Nil(t, p.next)
	})
}

// A transaction that was guarded by the hold and may still be applied needs the node to be deleted.
func TestHoldIsPassedOnUnlessAGuardedTransactionMayStillBeApplied(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes []error
		passed   bool
	}{
		"no transaction": {nil, true},
		"applied":        {[]error{nil}, true},
		"refused":        {[]error{&framework.Error{Outcome: framework.NotApplied, Err: zk.ErrNoNode}}, true},
		"unknown":        {[]error{&framework.Error{Err: zk.ErrConnectionClosed}}, false},
		"unknown first":  {[]error{&framework.Error{Err: zk.ErrConnectionClosed}, nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p := (&lent{}).hold("key"), &passing{}
				h.SetHandoff(p)
				for _, err := range test.outcomes {
					done, ok := h.owned.startGuard(h)
					require.True(t, ok)
					done(err)
				}
				require.NoError(t, h.Release())
				require.Equal(t, test.passed, p.next != nil)
				if p.next != nil {
					require.NoError(t, p.next.Release())
				}
			})
		})
	}
}

func TestErrorOfADeletedNodeNamesItsOwner(t *testing.T) {
	require.EqualError(t, &nodeDeletedError{node: "/n"}, ErrNodeDeleted.Error()+": /n")
	require.EqualError(t, &nodeDeletedError{node: "/n", owner: 0x2a},
		ErrNodeDeleted.Error()+": /n belongs to session 0x2a now")
}

// asking is a context of the program, whose methods ask for the error of a hold. Package context calls them
// when a context that was made from it is canceled.
type asking struct {
	context.Context
	done chan struct{}
	hold *Hold
}

func (a *asking) Done() <-chan struct{} {
	_ = a.hold.Err()
	return a.done
}

func (a *asking) Value(key any) any {
	_ = a.hold.Err()
	return a.Context.Value(key)
}

func (a *asking) Err() error {
	if isClosed(a.done) {
		return context.Canceled
	}
	return nil
}

func (a *asking) AfterFunc(f func()) func() bool {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-a.done:
			f()
		case <-stopped:
		}
	}()
	return func() bool {
		close(stopped)
		return a.hold.Err() != nil
	}
}

func TestHoldEndsUnderAContextOfTheProgram(t *testing.T) {
	h := (&lent{}).hold(nil)
	ctx := h.Context(&asking{t.Context(), make(chan struct{}), h})
	released := make(chan struct{})
	go func() {
		defer close(released)
		_ = h.Release()
	}()
	testzk.Closes(t, released, "Release waits for a lock of its own")
	require.ErrorIs(t, context.Cause(ctx), ErrNotHeld)
	other := (&lent{}).hold(nil)
	parent := &asking{t.Context(), make(chan struct{}), other}
	ctx = other.Context(parent)
	close(parent.done)
	testzk.Closes(t, ctx.Done(), "the context goes on")
	require.NoError(t, other.Release())
}

// endingBackground is a resource whose background takes one call. Then its session ends.
type endingBackground struct {
	resource
	calls int
}

func (r *endingBackground) background(fn func()) bool {
	r.calls++
	return r.calls == 1 && r.resource.background(fn)
}

// ends is a Handoff that counts the ends of its node.
type ends struct{ n int }

func (e *ends) Next(*Hold) Decision { return Delete }
func (e *ends) Requested()          {}
func (e *ends) Ended()              { e.n++ }

func TestPartWhoseSessionEndsWhileItIsReleasedTellsItsHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &lent{}
		part, other := (&lent{}).hold(nil), lost.hold(nil)
		handoff := &ends{}
		part.SetHandoff(handoff)
		synctest.Wait() // what watches it has read its resource
		part.owned.resource = &endingBackground{resource: part.owned.resource}
		whole := Combine(nil, part, other)
		close(lost.lost)
		synctest.Wait()
		require.Error(t, whole.Err())
		require.ErrorIs(t, part.Err(), ErrNotHeld)
		require.Equal(t, 1, handoff.n)
	})
}
