package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// news is what an observer is told.
type news struct {
	who leader.Leader
	err error
}

// observe observes until ctx ends; the channel is closed when the sequence has ended.
func observe(ctx context.Context, c *framework.Client, path string) <-chan news {
	told := make(chan news, 1000)
	go func() {
		defer close(told)
		for who, err := range leader.Observe(ctx, c, path) {
			told <- news{who, err}
		}
	}()
	return told
}

// leads waits until the observer is told that id leads, "" for nobody.
func leads(t testing.TB, told <-chan news, id string) leader.Leader {
	t.Helper()
	select {
	case n, ok := <-told:
		require.True(t, ok, "it does not go on")
		require.NoError(t, n.err)
		require.Equal(t, id, n.who.ID)
		require.Equal(t, id != "", n.who.Leader)
		return n.who
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the observer is told nothing")
	}
	panic("unreachable")
}

func TestObserverIsToldOfEachLeader(t *testing.T) {
	path, c := testzk.Path(t), own(t)
	ctx, stop := context.WithCancel(t.Context())
	told := observe(ctx, c, path)
	leads(t, told, "") // there is no such node
	alice := started(t, own(t), path, leader.WithID("alice"))
	who := leads(t, told, "alice")
	term := await(t, alice)
	require.Equal(t, term.Token(), who.Token)
	require.Equal(t, term.Path(), who.Node)
	bob := started(t, own(t), path, leader.WithID("bob"))
	inLine(t, c, path, 2)
	require.NoError(t, alice.Close())
	leads(t, told, "bob")
	require.NoError(t, bob.Close())
	leads(t, told, "")
	stop()
	_, open := <-told
	require.False(t, open, "the end of the context is no news")
}

func TestObserverSeesBothKindsOfCandidates(t *testing.T) {
	path := testzk.Path(t)
	told := observe(t.Context(), own(t), path)
	leads(t, told, "")
	e := stand(t, own(t), path, leader.WithID("election"))
	leads(t, told, "election")
	e.stop()
	_ = e.returns(t)
	leads(t, told, "")
	l := started(t, own(t), path, leader.WithID("latch"))
	leads(t, told, "latch")
	require.NoError(t, l.Close())
	leads(t, told, "")
}

// Candidates that come and go behind the leader, and what is written to the leader's node, are no news, and cost the observer nothing
// but a read.
func TestObserverIsToldOfNothingElse(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithID("first"))
		term := await(t, first)
		c := member(t, srv, "observer")
		ctx, stop := context.WithCancel(t.Context())
		told := observe(ctx, c, "/leader")
		leads(t, told, "first")
		before := srv.Client("observer").Requests()
		for i := range 10 {
			require.NoError(t, started(t, member(t, srv, fmt.Sprintf("c%d", i)), "/leader").Close())
		}
		require.NoError(t, srv.Set(term.Path(), []byte("changed")))
		time.Sleep(2 * time.Second)
		after := srv.Client("observer").Requests()
		require.Equal(t, before[zktest.OpGetData]+1, after[zktest.OpGetData])
		require.Equal(t, before[zktest.OpGetChildren2]+1, after[zktest.OpGetChildren2])
		require.Empty(t, told)
		stop()
		_, open := <-told
		require.False(t, open)
	})
}

func TestObserverGoesOnAfterTroubleWithTheConnection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithID("first"))
		await(t, first)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		told := observe(ctx, member(t, srv, "observer"), "/leader")
		leads(t, told, "first")
		srv.Client("observer").Refuse(true)
		srv.Client("observer").Drop()
		n := <-told
		require.ErrorIs(t, n.err, framework.ErrNotConnected)
		require.Empty(t, n.who.Node)
		second := started(t, member(t, srv, "second"), "/leader", leader.WithID("second"))
		require.NoError(t, first.Close())
		await(t, second)
		srv.Client("observer").Refuse(false)
		for n = range told {
			if n.err == nil {
				break
			}
			require.ErrorIs(t, n.err, framework.ErrNotConnected)
		}
		require.Equal(t, "second", n.who.ID)
	})
}

func TestObserverEndsWithTheClientAndWithRefusals(t *testing.T) {
	path := testzk.Path(t)
	c := own(t)
	told := observe(t.Context(), c, path)
	leads(t, told, "")
	require.NoError(t, c.Close())
	n := <-told
	require.ErrorIs(t, n.err, framework.ErrClosed)
	_, open := <-told
	require.False(t, open)

	plain := testzk.Observer(t)
	secret := zk.DigestACL(zk.PermAll, "user", "password")
	_, err := plain.Create(path[:strings.LastIndex(path, "/")], nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNodeExists)
	}
	_, err = plain.Create(path, nil, 0, secret)
	require.NoError(t, err)
	told = observe(t.Context(), own(t), path)
	n = <-told
	require.ErrorIs(t, n.err, zk.ErrNoAuth)
	_, open = <-told
	require.False(t, open)
}

// An observer that has enough is let go, whatever it is told at that moment.
func TestObserverMayStopAtAnyTime(t *testing.T) {
	path, c := testzk.Path(t), own(t)
	for range leader.Observe(t.Context(), c, path) {
		break
	}
	for range leader.Observe(t.Context(), testzk.Client(t, "127.0.0.1:1", framework.WithConnectTimeout(10*time.Millisecond)), path) {
		break
	}
}

// At the end of the parent's counter names tell nothing of who is first.
func TestLeaderIsKnownAtTheEndOfTheCounter(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/leader", nil))
		require.NoError(t, srv.SetSequence("/leader", 1<<31-2))
		c := member(t, srv, "observer")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		told := observe(ctx, c, "/leader")
		leads(t, told, "")
		var latches []*leader.Latch
		for i := range 4 {
			latches = append(latches, started(t, member(t, srv, fmt.Sprintf("c%d", i)), "/leader", leader.WithID(fmt.Sprintf("c%d", i))))
			time.Sleep(time.Second)
		}
		for i, l := range latches {
			leads(t, told, fmt.Sprintf("c%d", i))
			require.NotNil(t, l.Term())
			line, err := leader.Participants(t.Context(), c, "/leader")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("c%d", i), line[0].ID)
			require.NoError(t, l.Close())
		}
		leads(t, told, "")
	})
}

// A server that was wiped begins to count transactions anew: another leader may have the token of the last one.
func TestObserverIsToldOfAnotherLeaderWithTheSameToken(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		enter := func(id string) {
			require.NoError(t, srv.Create("/leader", nil))
			require.NoError(t, srv.Create("/leader/"+id+"-latch-0000000000", []byte(id)))
		}
		enter("alice")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		told := observe(ctx, member(t, srv, "observer"), "/leader")
		alice := leads(t, told, "alice")
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		enter("bob")
		require.Equal(t, alice.Token, leads(t, told, "bob").Token)
	})
}

func TestObserverIsToldOnceThatTheClientIsClosed(t *testing.T) {
	for down := time.Duration(0); down < 20*time.Second; down += 100 * time.Millisecond {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			c := member(t, srv, "observer")
			srv.Stop()
			told := observe(t.Context(), c, "/leader")
			time.Sleep(down)
			require.NoError(t, c.Close())
			var closed int
			for n := range told {
				if errors.Is(n.err, framework.ErrClosed) {
					closed++
				}
			}
			require.Equal(t, 1, closed, "%v", down)
			require.NoError(t, srv.Start())
		})
	}
}

func TestObserverWithAContextThatHasEndedIsToldNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, open := <-observe(ctx, testzk.Client(t, "127.0.0.1:1"), "/leader")
	require.False(t, open)
}
