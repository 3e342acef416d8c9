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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// report is one report of an observer.
type report struct {
	participant recipes.Participant
	err         error
}

// observe observes until ctx ends. The channel is closed when the sequence has ended.
func observe(ctx context.Context, c *framework.Client, path string) <-chan report {
	reports := make(chan report, 1000)
	go func() {
		defer close(reports)
		for participant, err := range leader.Observe(ctx, c, path) {
			reports <- report{participant, err}
		}
	}()
	return reports
}

// leads waits for the report that id leads; "" means that there is no leader.
func leads(t testing.TB, reports <-chan report, id string) recipes.Participant {
	t.Helper()
	select {
	case n, ok := <-reports:
		require.True(t, ok, "the sequence has ended")
		require.NoError(t, n.err)
		require.Equal(t, id, string(n.participant.Data))
		require.Equal(t, id != "", n.participant.Holds)
		return n.participant
	case <-testzk.Context(t).Done():
		require.FailNow(t, "no report")
	}
	panic("unreachable")
}

func TestObserverReportsEachLeader(t *testing.T) {
	path, c := testzk.Path(t), own(t)
	ctx, stop := context.WithCancel(t.Context())
	reports := observe(ctx, c, path)
	leads(t, reports, "") // the path does not exist
	alice := started(t, own(t), path, leader.WithID("alice"))
	participant := leads(t, reports, "alice")
	term := await(t, alice)
	require.Equal(t, term.Token(), participant.Token)
	require.Equal(t, term.Path(), participant.Node)
	bob := started(t, own(t), path, leader.WithID("bob"))
	queued(t, c, path, 2)
	require.NoError(t, alice.Close())
	leads(t, reports, "bob")
	require.NoError(t, bob.Close())
	leads(t, reports, "")
	stop()
	_, open := <-reports
	require.False(t, open, "the end of the context is not reported")
}

func TestObserverReportsBothKindsOfCandidates(t *testing.T) {
	path := testzk.Path(t)
	reports := observe(t.Context(), own(t), path)
	leads(t, reports, "")
	e := stand(t, own(t), path, leader.WithID("election"))
	leads(t, reports, "election")
	e.stop()
	_ = e.returns(t)
	leads(t, reports, "")
	l := started(t, own(t), path, leader.WithID("latch"))
	leads(t, reports, "latch")
	require.NoError(t, l.Close())
	leads(t, reports, "")
}

// Other candidates and data written to the leader's node cause no report. They cost the observer a
// single read.
func TestObserverReportsNothingElse(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithID("first"))
		term := await(t, first)
		c := member(t, srv, "observer")
		ctx, stop := context.WithCancel(t.Context())
		reports := observe(ctx, c, "/leader")
		leads(t, reports, "first")
		before := srv.Client("observer").Requests()
		for i := range 10 {
			require.NoError(t, started(t, member(t, srv, fmt.Sprintf("c%d", i)), "/leader").Close())
		}
		require.NoError(t, srv.Set(term.Path(), []byte("changed")))
		time.Sleep(2 * time.Second)
		after := srv.Client("observer").Requests()
		require.Equal(t, before[fault.OpGetData]+1, after[fault.OpGetData])
		require.Equal(t, before[fault.OpGetChildren2]+1, after[fault.OpGetChildren2])
		require.Empty(t, reports)
		stop()
		_, open := <-reports
		require.False(t, open)
	})
}

func TestObserverContinuesAfterAConnectionLoss(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithID("first"))
		await(t, first)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		reports := observe(ctx, member(t, srv, "observer"), "/leader")
		leads(t, reports, "first")
		srv.Client("observer").Refuse(true)
		srv.Client("observer").Drop()
		n := <-reports
		require.ErrorIs(t, n.err, framework.ErrNotConnected)
		require.Empty(t, n.participant.Node)
		second := started(t, member(t, srv, "second"), "/leader", leader.WithID("second"))
		require.NoError(t, first.Close())
		await(t, second)
		srv.Client("observer").Refuse(false)
		for n = range reports {
			if n.err == nil {
				break
			}
			require.ErrorIs(t, n.err, framework.ErrNotConnected)
		}
		require.Equal(t, "second", string(n.participant.Data))
	})
}

func TestObserverEndsWithTheClientAndWithRefusals(t *testing.T) {
	path := testzk.Path(t)
	c := own(t)
	reports := observe(t.Context(), c, path)
	leads(t, reports, "")
	require.NoError(t, c.Close())
	n := <-reports
	require.ErrorIs(t, n.err, framework.ErrClosed)
	_, open := <-reports
	require.False(t, open)

	plain := testzk.Observer(t)
	secret := zk.DigestACL(zk.PermAll, "user", "password")
	_, err := plain.Create(path[:strings.LastIndex(path, "/")], nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNodeExists)
	}
	_, err = plain.Create(path, nil, 0, secret)
	require.NoError(t, err)
	reports = observe(t.Context(), own(t), path)
	n = <-reports
	require.ErrorIs(t, n.err, zk.ErrNoAuth)
	_, open = <-reports
	require.False(t, open)
}

// An observer may stop at any report.
func TestObserverMayStopAtAnyTime(t *testing.T) {
	path, c := testzk.Path(t), own(t)
	for range leader.Observe(t.Context(), c, path) {
		break
	}
	unreachable := testzk.Client(t, "127.0.0.1:1", framework.WithConnectTimeout(10*time.Millisecond))
	for range leader.Observe(t.Context(), unreachable, path) {
		break
	}
}

// At the end of the parent's counter names do not show the first node.
func TestLeaderIsKnownAtTheEndOfTheCounter(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/leader", nil))
		require.NoError(t, srv.SetSequence("/leader", 1<<31-2))
		c := member(t, srv, "observer")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		reports := observe(ctx, c, "/leader")
		leads(t, reports, "")
		var latches []*leader.Latch
		for i := range 4 {
			id := fmt.Sprintf("c%d", i)
			latches = append(latches, started(t, member(t, srv, id), "/leader", leader.WithID(id)))
			time.Sleep(time.Second)
		}
		for i, l := range latches {
			leads(t, reports, fmt.Sprintf("c%d", i))
			require.NotNil(t, l.Term())
			all := listed(t, c, "/leader")
			require.Equal(t, fmt.Sprintf("c%d", i), string(all[0].Data))
			require.True(t, all[0].Holds)
			require.NoError(t, l.Close())
		}
		leads(t, reports, "")
	})
}

// A wiped server counts transactions from the beginning. Another leader may then have the token of
// the last one.
func TestObserverReportsAnotherLeaderWithTheSameToken(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		enter := func(id string) {
			require.NoError(t, srv.Create("/leader", nil))
			require.NoError(t, srv.Create("/leader/"+id+"-latch-0000000000", []byte(id)))
		}
		enter("alice")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		reports := observe(ctx, member(t, srv, "observer"), "/leader")
		alice := leads(t, reports, "alice")
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		enter("bob")
		require.Equal(t, alice.Token, leads(t, reports, "bob").Token)
	})
}

func TestObserverReportsOnceThatTheClientIsClosed(t *testing.T) {
	for down := time.Duration(0); down < 20*time.Second; down += 100 * time.Millisecond {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			c := member(t, srv, "observer")
			srv.Stop()
			reports := observe(t.Context(), c, "/leader")
			time.Sleep(down)
			require.NoError(t, c.Close())
			var closed int
			for n := range reports {
				if errors.Is(n.err, framework.ErrClosed) {
					closed++
				}
			}
			require.Equal(t, 1, closed, "%v", down)
			require.NoError(t, srv.Start())
		})
	}
}

func TestObserverWithAnEndedContextReportsNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, open := <-observe(ctx, testzk.Client(t, "127.0.0.1:1"), "/leader")
	require.False(t, open)
}
