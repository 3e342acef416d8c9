package multilock_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestAcquireWithALostReplyCreatesOneNodeInEachQueue(t *testing.T) {
	paths := named(t, 4)
	for name, action := range map[string]fault.Action{"reply": fault.DropAfter(), "request": fault.DropBefore()} {
		// The client of the last round still looks for late creates: not through this proxy.
		p := testzk.Proxy(t)
		m := newMulti(t, testzk.Connected(t, p.Addr()), paths)
		rule := p.On(fault.Match{Op: fault.OpMulti}, action)
		hold := acquire(t, m)
		require.Equal(t, 1, rule.Hits(), name)
		for i, path := range paths {
			queue := queued(t, own(t), path, 1)
			require.Equal(t, queue[0].Node, hold.Paths()[i], name)
			require.Equal(t, queue[0].Token, hold.Tokens()[i],
				"the token is the node's czxid, even if it had to be read: %s", name)
		}
		require.NoError(t, hold.Release())
		free(t, paths...)
	}
}

func TestFailedAcquireWithALostReplyLeavesNoNode(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 4)
	m := newMulti(t, testzk.Connected(t, p.Addr(), framework.WithRetry(retry.Never())), paths)
	require.NoError(t, acquire(t, m).Release())
	rule := p.On(fault.Match{Op: fault.OpMulti}, fault.DropAfter())
	_, err := m.Acquire(testzk.Context(t))
	require.Error(t, err)
	require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	require.Equal(t, 1, rule.Hits())
	require.NoError(t, acquire(t, newMulti(t, own(t), paths)).Release(), "a node was left")
	free(t, paths...)
}

// exactly returns the pattern of a path without those below it.
func exactly(path string) string {
	last := len(path) - 1
	return path[:last] + "[" + path[last:] + "]"
}

// The transaction is applied. Before the client can look for its nodes, one of them is deleted.
func TestNodeDeletedBeforeItWasFoundIsReplaced(t *testing.T) {
	paths := named(t, 3)
	for i, queue := range paths {
		// The client of the last round still looks for late creates, with requests that look like
		// the search. They do not pass this proxy.
		p := testzk.Proxy(t)
		m := newMulti(t, testzk.Connected(t, p.Addr()), paths)
		require.NoError(t, acquire(t, m).Release())
		search := p.On(fault.Match{Op: fault.OpMulti, Path: exactly(paths[0])}, fault.Hold())
		create := p.On(fault.Match{Op: fault.OpMulti}, fault.DropAfter())
		a := testlock.Start(t, m.Acquire)
		require.NoError(t, search.Wait(testzk.Context(t)))
		require.Equal(t, 1, create.Hits())
		remove(t, queued(t, own(t), queue, 1)[0].Node)
		require.True(t, a.Waiting(), "the search is not held")
		search.Release()
		hold := a.Won(t)
		for n, path := range paths {
			require.Equal(t, hold.Paths()[n], queued(t, own(t), path, 1)[0].Node,
				"%d: a former node is still in the queue", i)
		}
		require.NoError(t, hold.Release())
		free(t, paths...)
	}
}

func TestGrantThatRacesWithCancellationIsReleased(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 3)
	m := newMulti(t, testzk.Connected(t, p.Addr()), paths)
	require.NoError(t, acquire(t, m).Release())
	rule := p.On(fault.Match{Op: fault.OpMulti}, fault.Hold())
	a := testlock.Start(t, m.Acquire)
	require.NoError(t, rule.Wait(testzk.Context(t)))
	a.Cancel() // the request was sent and will be applied
	_, err := a.Wait()
	require.Error(t, err)
	rule.Release()
	require.NoError(t, acquire(t, newMulti(t, own(t), paths)).Release())
	free(t, paths...)
}

// The cause of the caller's canceled context is no answer of the servers, even if it looks like
// one.
func TestCancelCauseIsNotTakenForADeletedNode(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 2)
	busy := acquire(t, newMutex(t, own(t), paths[1]))
	c := testzk.Connected(t, p.Addr())
	for name, l := range map[string]recipes.Locker{"set": newMulti(t, c, paths), "mutex": newMutex(t, c, paths[1])} {
		look := p.On(fault.Match{Op: fault.OpGetChildren2, Path: paths[1]}, fault.Hold())
		ctx, cancel := context.WithCancelCause(testzk.Context(t))
		result := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx)
			result <- err
		}()
		require.NoError(t, look.Wait(testzk.Context(t)))
		cancel(zk.ErrNoNode)
		require.ErrorIs(t, <-result, context.Canceled, name)
		look.Release()
		queued(t, own(t), paths[1], 1)
		free(t, paths[0])
	}
	require.NoError(t, busy.Release())
}

func TestCancelCauseIsNotTakenForATooLargeTransaction(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 2)
	m := newMulti(t, testzk.Connected(t, p.Addr()), paths)
	require.NoError(t, acquire(t, m).Release())
	enqueue := p.On(fault.Match{Op: fault.OpMulti}, fault.Hold())
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	result := make(chan error, 1)
	go func() {
		_, err := m.Acquire(ctx)
		result <- err
	}()
	require.NoError(t, enqueue.Wait(testzk.Context(t)))
	cancel(framework.ErrTooLarge)
	require.ErrorIs(t, <-result, context.Canceled)
	enqueue.Release()
	hold := acquire(t, m)
	require.Equal(t, hold.Tokens()[0], hold.Tokens()[1], "acquired one after another")
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestReleaseWithALostRequestOrReplyIsNotALoss(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 3)
	m := newMulti(t, testzk.Connected(t, p.Addr()), paths)
	for _, action := range []fault.Action{fault.DropAfter(), fault.DropBefore()} {
		hold := acquire(t, m)
		rule := p.On(fault.Match{Op: fault.OpMulti}, action)
		require.NoError(t, hold.Release())
		require.Equal(t, 1, rule.Hits())
		free(t, paths...)
	}
}

// In these queues the tokens, and whether there is a predecessor, need reads of their own.
func TestReadOnlyParentsAreLockedLikeOthers(t *testing.T) {
	paths := named(t, 4)
	c := own(t)
	require.NoError(t, acquire(t, newMulti(t, c, paths)).Release())
	forbid(t, paths[1], zk.PermWrite)
	forbid(t, paths[3], zk.PermWrite|zk.PermRead)
	t.Cleanup(func() { forbid(t, paths[3], 0) })
	m := newMulti(t, c, paths[:3])
	hold := acquire(t, m)
	for i, path := range paths[:3] {
		queue := queued(t, c, path, 1)
		require.Equal(t, queue[0].Token, hold.Tokens()[i])
		excluded(t, own(t), path)
	}
	waiter := testlock.Start(t, newMulti(t, own(t), paths[:3]).Acquire)
	queued(t, c, paths[1], 2)
	require.True(t, waiter.Waiting())
	require.NoError(t, hold.Release())
	require.NoError(t, waiter.Won(t).Release())

	_, err := newMulti(t, c, paths).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth, "no lock is held in a queue that cannot be read")
	free(t, paths[:3]...)
}

func TestParentThatRefusesNodesLeavesNoNodeInTheOthers(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	require.NoError(t, acquire(t, newMulti(t, c, paths)).Release())
	forbid(t, paths[1], zk.PermCreate)
	for name, m := range kinds(t, c, paths) {
		_, err := m.Acquire(testzk.Context(t))
		require.ErrorIs(t, err, zk.ErrNoAuth, name)
		require.ErrorContains(t, err, paths[1], name)
		free(t, paths...)
	}
}

// All parents may be deleted at once if the locks have been unused for a while.
func TestDeletedParentsAreCreatedAgain(t *testing.T) {
	paths := named(t, 30)
	c := own(t)
	m := newMulti(t, c, paths)
	require.NoError(t, acquire(t, m).Release())
	o := testzk.Observer(t)
	for _, node := range append(paths, path.Dir(paths[0])) {
		require.NoError(t, o.Delete(node, -1))
	}
	hold := acquire(t, m)
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestLocksWorkWhileTheServersDeleteTheirContainers(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, 10*time.Millisecond)
	c := testzk.Connected(t, server.Connect())
	m := newMulti(t, c, []string{"/deep/down/a", "/deep/down/b", "/deep/c"})
	ctx := testzk.Context(t)
	contend(t, 4, func(int) error {
		for range 25 {
			hold, err := m.Acquire(testzk.Context(t))
			if err != nil {
				return err
			}
			if err := hold.Release(); err != nil {
				return err
			}
		}
		return nil
	})
	testzk.Eventually(t, func() bool {
		_, err := c.Exists(ctx, "/deep")
		return err != nil
	}, "the servers do not delete the containers")
}

// tooMany returns so many paths that their nodes exceed the size of a request.
func tooMany(t testing.TB) []string {
	t.Helper()
	root := testzk.Path(t)
	paths := make([]string, 24)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%s-%02d", root, strings.Repeat("x", 50_000), i)
	}
	return paths
}

func TestTooManyLocksForOneTransactionAreAcquiredInOrder(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c := testzk.Connected(t, testzk.Connect(), framework.WithLogger(zap.New(core)))
	paths := tooMany(t)
	m := newMulti(t, c, paths)
	warnings := func() int { return logs.FilterMessageSnippet("too large for one transaction").Len() }
	for range 2 {
		hold := acquire(t, m)
		testzk.Eventually(t, func() bool { return warnings() > 0 }, "no warning")
		require.Equal(t, 1, warnings(), "once")
		require.Len(t, hold.Tokens(), len(paths))
		require.IsIncreasing(t, hold.Tokens(), "in the order of the paths")
		excluded(t, own(t), paths[0])
		excluded(t, own(t), paths[23])
		inner, err := m.Acquire(hold.Context(testzk.Context(t)))
		require.NoError(t, err)
		require.NoError(t, inner.Release())
		require.NoError(t, hold.Release())
	}
	hold, err := newMulti(t, c, paths).TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return warnings() > 1 }, "no warning of the second multi-lock")
	require.Equal(t, 2, warnings(), "once for each multi-lock")
	require.EqualValues(t, len(paths), logs.All()[0].ContextMap()["locks"])
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestDataThatIsTooLargeIsTheCallersError(t *testing.T) {
	paths := named(t, 2)
	_, err := newMulti(t, own(t), paths, multilock.WithData(make([]byte, 1<<20))).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, framework.ErrTooLarge)
	free(t, paths...)
}
