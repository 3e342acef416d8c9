package inspect_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestBreakDeletesOneIncarnationOfANode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		node := "/lock/" + guid + "lock-0000000000"
		create(t, a, node, "", framework.Ephemeral())
		was := show(t, b, "/lock").Nodes[0]
		require.NoError(t, a.Delete(t.Context(), node, -1))
		create(t, a, node, "", framework.Ephemeral())
		_, err := inspect.Break(t.Context(), b, was)
		require.ErrorIs(t, err, zk.ErrNoNode, "it is another one")
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		is := show(t, b, "/lock").Nodes[0]
		token, err := inspect.Break(t.Context(), b, is)
		require.NoError(t, err)
		require.Equal(t, is.Token, token)
		_, err = inspect.Break(t.Context(), b, is)
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// The data of the node changes between the read and the deletion.
func TestBreakDespiteNewData(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := client(t, srv, "a"), client(t, srv, "b")
		hold := testlock.Held(t, newMutex(t, a, "/lock"))
		n := show(t, b, "/lock").Nodes[0]
		held := srv.On(fault.Match{Client: "b", Op: fault.OpDelete}, fault.Hold())
		done := make(chan error, 1)
		go func() {
			_, err := inspect.Break(context.Background(), b, n)
			done <- err
		}()
		require.NoError(t, held.Wait(t.Context()))
		require.NoError(t, recipes.Revoke(t.Context(), a, n.Participant()))
		held.Release()
		require.NoError(t, <-done)
		<-hold.Done()
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	})
}

func TestBreakAfterALostConnectionDoesNotBreakTheNextHolder(t *testing.T) {
	for name, action := range map[string]fault.Action{"before": fault.DropBefore(), "after": fault.DropAfter()} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, b := client(t, srv, "a"), client(t, srv, "b")
				hold := testlock.Held(t, newMutex(t, a, "/lock"))
				n := show(t, b, "/lock").Nodes[0]
				srv.On(fault.Match{Client: "b", Op: fault.OpDelete}, action)
				_, err := inspect.Break(t.Context(), b, n)
				require.NoError(t, err)
				<-hold.Done()
				next := testlock.Held(t, newMutex(t, a, "/lock"))
				_, err = inspect.Break(t.Context(), b, n)
				require.ErrorIs(t, err, zk.ErrNoNode)
				require.NoError(t, next.Err())
			})
		})
	}
}

func TestBreakRefusesWhatIsNotInAQueue(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		create(t, c, "/group/host-1", "", framework.Ephemeral())
		create(t, c, "/barrier", "10.0.0.3")
		for _, n := range []inspect.Node{{}, {Path: "/barrier", Token: 1}, {Path: "a", Token: 1},
			show(t, c, "/group").Nodes[0], {Path: "/lock/" + guid + "lock-0000000000"}} {
			_, err := inspect.Break(t.Context(), c, n)
			require.ErrorIs(t, err, framework.ErrInvalidPath, n.Path)
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), n.Path)
		}
		require.Len(t, show(t, c, "/group").Nodes, 1)
		var none context.Context
		_, err := inspect.Break(none, c, inspect.Node{Path: "/"})
		require.ErrorIs(t, err, framework.ErrNilContext)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		_, err = inspect.Break(t.Context(), nil, inspect.Node{Path: "/"})
		require.ErrorContains(t, err, "client is nil")
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	})
}

// Only the deletion can be of unknown outcome. The context ends while the servers have a request.
func TestTheOutcomeOfBreakIsThatOfItsDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		op   fault.Op
		want framework.Outcome
	}{
		"sync":   {fault.OpMulti, framework.NotApplied},
		"read":   {fault.OpExists, framework.NotApplied},
		"delete": {fault.OpDelete, framework.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, b := client(t, srv, "a"), client(t, srv, "b")
				testlock.Held(t, newMutex(t, a, "/lock"))
				n := show(t, b, "/lock").Nodes[0]
				request := srv.On(fault.Match{Client: "b", Op: test.op}, fault.Hold())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					_, err := inspect.Break(ctx, b, n)
					done <- err
				}()
				require.NoError(t, request.Wait(t.Context()))
				cancel()
				err := <-done
				request.Release()
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, test.want, framework.OutcomeOf(err), err)
			})
		})
	}
}

// This test runs on real servers too.
func TestBreakEndsTheHoldOnServers(t *testing.T) {
	c, other, path := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	hold := testlock.Held(t, newMutex(t, c, path))
	testlock.Queue(t, newMutex(t, other, path))
	holder := queued(t, other, path, 2).Nodes[0]
	token, err := inspect.Break(testzk.Context(t), other, holder)
	require.NoError(t, err)
	require.EqualValues(t, hold.Token(), token)
	testzk.Closes(t, hold.Done(), "the holder does not notice")
	require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	_, err = inspect.Break(testzk.Context(t), other, holder)
	require.ErrorIs(t, err, zk.ErrNoNode)
}
