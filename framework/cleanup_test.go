package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestGuaranteedDeleteGoesOnAfterItsContextHasEnded(t *testing.T) {
	for _, namespaced := range []bool{false, true} {
		c, p := proxied(t, framework.WithRetry(retry.Never()))
		path := parent(t)
		_, err := c.Create(testzk.Context(t), path+"/a", nil)
		require.NoError(t, err)
		view, name := c, path+"/a"
		if namespaced {
			view, name = c.Namespace(path[1:]), "/a"
		}
		require.NoError(t, p.Refuse(true))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		within(t, "the wait", func() { err = view.DeleteGuaranteed(ctx, name) })
		failed(t, err, framework.Unknown, context.DeadlineExceeded)
		require.ErrorContains(t, err, "delete "+name+": ")
		_, _, there := observe(t, testzk.Observer(t), path+"/a")
		require.True(t, there)
		require.NoError(t, p.Refuse(false))
		testzk.Empty(t, path)
	}
}

func TestGuaranteedDeleteEndsWithTheSessionItIsBoundTo(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t)
	path := parent(t)
	_, err := c.Create(testzk.Context(t), path+"/a", nil)
	require.NoError(t, err)
	s := session(t, c)
	require.NoError(t, p.Refuse(true))
	states.await(t, framework.Connected, framework.Suspended)
	result := make(chan error, 1)
	go func() { result <- s.DeleteGuaranteed(testzk.Context(t), path+"/a") }()
	expire(t, s.ID())
	require.NoError(t, p.Refuse(false))
	failed(t, <-result, framework.NotApplied, framework.ErrSessionLost)
	_, _, there := observe(t, testzk.Observer(t), path+"/a")
	require.True(t, there, "the node was deleted although the session has ended")
}

func TestGuaranteedDeleteGoesOnInTheNextSessionOfTheClient(t *testing.T) {
	t.Parallel()
	c, p := proxied(t)
	path := parent(t)
	_, err := c.Create(testzk.Context(t), path+"/a", nil)
	require.NoError(t, err)
	id := session(t, c).ID()
	require.NoError(t, p.Refuse(true))
	result := make(chan error, 1)
	go func() { result <- c.DeleteGuaranteed(testzk.Context(t), path+"/a") }()
	expire(t, id)
	require.NoError(t, p.Refuse(false))
	require.NoError(t, <-result)
	testzk.Empty(t, path)
}

func TestGuaranteedDeleteEndsWithTheClient(t *testing.T) {
	c := refusedClient(t)
	result := make(chan error, 1)
	go func() { result <- c.DeleteGuaranteed(testzk.Context(t), "/a") }()
	select {
	case err := <-result:
		require.NoError(t, err, "returned too early")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, c.Close())
	err := <-result
	failed(t, err, framework.NotApplied, framework.ErrClosed)
	require.NotErrorIs(t, err, context.Canceled, "the caller's context was not canceled")
}

func TestGuaranteedDeleteRepeatsThroughManyFaults(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, framework.WithRetry(retry.Never()))
	path := parent(t)
	_, err := c.Create(testzk.Context(t), path+"/a", nil)
	require.NoError(t, err)
	p.On(fault.Match{Op: fault.OpDelete, Times: 4}, fault.DropBefore())
	p.On(fault.Match{Op: fault.OpDelete, Times: 2}, fault.DropAfter())
	require.NoError(t, c.DeleteGuaranteed(testzk.Context(t), path+"/a"), "NoNode after a lost answer means success")
	require.Equal(t, 7, p.Requests()[fault.OpDelete])
}

func TestCleanupGoesOnAfterFaults(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, framework.WithRetry(retry.Never()))
	under := parent(t)
	p.On(fault.Match{Op: fault.OpCreate, Path: under}, fault.DropAfter())
	p.On(fault.Match{Op: fault.OpMulti, Path: under}, fault.DropBefore())
	p.On(fault.Match{Op: fault.OpGetChildren2, Path: under}, fault.DropAfter())
	p.On(fault.Match{Op: fault.OpExists, Path: under}, fault.DropBefore())
	p.On(fault.Match{Op: fault.OpDelete, Path: under}, fault.DropBefore())
	_, err := c.Create(testzk.Context(t), under+"/n-", nil, kinds["lock node"]...)
	failed(t, err, framework.Unknown, zk.ErrConnectionClosed)
	awaitDeleted(t, testzk.Observer(t), under, true)
}

// A node of another client may have a similar name.
func TestCleanupDeletesNoOtherNodes(t *testing.T) {
	c, p := proxied(t, framework.WithRetry(retry.Never()))
	o, under := testzk.Observer(t), parent(t)
	others := []string{"_c_", "_c_x", "n-0000000000", "_c_00000000-0000-4000-8000-000000000000-n-0000000001"}
	for _, name := range others {
		_, err := o.Create(under+"/"+name, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	p.On(fault.Match{Op: fault.OpCreate, Path: under}, fault.DropAfter())
	_, err := c.Create(testzk.Context(t), under+"/n-", nil, kinds["lock node"]...)
	failed(t, err, framework.Unknown)
	testzk.Eventually(t, func() bool { return p.Requests()[fault.OpDelete] == 1 }, "no node was deleted")
	testzk.Eventually(t, func() bool {
		return len(children(t, o, under)) == len(others)
	}, "the node of the client is left")
	require.ElementsMatch(t, others, children(t, o, under))
}

func TestPersistentNodeOfALostSessionIsDeletedInTheNextSession(t *testing.T) {
	t.Parallel()
	c, p := proxied(t, testzk.Mortal(), framework.WithRetry(retry.Never()))
	dir, s := parent(t), session(t, c)
	rule := p.On(fault.Match{Op: fault.OpCreate, Path: dir}, fault.DropAfter())
	result := make(chan error, 1)
	go func() {
		_, err := s.Create(testzk.Context(t), dir+"/n", nil, framework.Protected())
		result <- err
	}()
	require.NoError(t, rule.Wait(testzk.Context(t)))
	require.NoError(t, p.Refuse(true))
	require.Error(t, <-result)
	closes(t, s.Done(), "the end of the session")
	require.NoError(t, p.Refuse(false))
	testzk.Empty(t, dir)
}
