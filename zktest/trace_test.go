package zktest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestTraceHasAllEntriesInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, _, _, err := conn.ExistsW("/x")
		require.NoError(t, err)
		time.Sleep(ping + 250*time.Millisecond)
		require.NoError(t, create(conn, "/x"))
		require.Error(t, create(conn, "/x"))
		srv.On(fault.Match{Op: fault.OpDelete}, fault.DropBefore())
		require.Error(t, conn.Delete("/x", -1))
		synctest.Wait()
		want := `
    0.000000s     1 a        s1   connected
    0.000000s     1 a        s1   exists /x: no node (-101)
    3.250000s     2 a        s1   create /x
    3.250000s     2 a        s1   event /x created
    3.250000s     3 a        s1   create /x: node exists (-110)
    3.250000s     3 a        s1   delete /x dropped before
    3.250000s     3 a        s1   disconnected
`
		require.Equal(t, strings.TrimPrefix(want, "\n"), srv.Trace().String())
		entry := srv.Trace().Entries[4]
		require.Equal(t, zktest.Entry{
			Zxid: 3, At: 3250 * time.Millisecond, Client: "a", Session: "s1",
			What: "create", Path: "/x", Code: zktest.NodeExists, Timeout: 9 * time.Second,
		}, entry)
	})
}

func TestTraceHasThePathOfASequentialNode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.CreateProtectedEphemeralSequential("/n-", nil, nil)
		require.Error(t, err, "without an ACL")
		require.Equal(t, zktest.InvalidACL, traced(srv, "create")[0].Code)
		path := "/n-0000000000"
		_, err = conn.Create("/n-", nil, 2, open)
		require.NoError(t, err)
		require.Equal(t, path, traced(srv, "create")[1].Note)
	})
}

func TestTraceDropsAndCountsTheOldest(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		const all, limit = 10_250, 10_000
		for i := range all {
			require.NoError(t, srv.Create(fmt.Sprintf("/n%d", i), nil))
		}
		trace := srv.Trace()
		require.Equal(t, all-limit, trace.Lost)
		require.Len(t, trace.Entries, limit)
		for i, e := range trace.Entries {
			require.Equal(t, fmt.Sprintf("/n%d", trace.Lost+i), e.Path)
		}
		require.True(t, strings.HasPrefix(trace.String(), "(250 earlier entries are gone)\n"))

		tail := trace.Tail(3)
		require.Equal(t, all-3, tail.Lost)
		require.Equal(t, trace.Entries[limit-3:], tail.Entries)
		require.Equal(t, trace, trace.Tail(all))
	})
}

func TestTraceIsACopy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/x", nil))
		before := srv.Trace()
		require.NoError(t, srv.Create("/y", nil))
		require.Len(t, before.Entries, 1)
		before.Entries[0].Path = "changed"
		require.Equal(t, "/x", srv.Trace().Entries[0].Path)
	})
}

func TestCanonicalTracesOfEqualRunsAreEqual(t *testing.T) {
	run := func(t *testing.T) (full, canonical string) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			conn := connect(t, srv, "a")
			for range 2 {
				path, err := conn.CreateProtectedEphemeralSequential("/n-", nil, open)
				require.NoError(t, err)
				require.NoError(t, conn.Delete(path, -1))
			}
			full, canonical = srv.Trace().String(), srv.Trace().Canonical()
		})
		return full, canonical
	}
	full1, canonical1 := run(t)
	full2, canonical2 := run(t)
	require.NotEqual(t, full1, full2)
	require.Equal(t, canonical1, canonical2)
	require.Contains(t, canonical1, "delete /_c_<1>-n-0000000000")
	require.Contains(t, canonical1, "delete /_c_<2>-n-0000000001")
}

func TestRequestThatARuleHoldsOrDropsCounts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		srv.On(fault.Match{Op: fault.OpDelete}, fault.DropBefore())
		held := start(func() error { return create(conn, "/x") })
		require.Equal(t, 1, srv.Requests()[fault.OpCreate])
		srv.ResetCounts()
		rule.Release()
		require.NoError(t, held.wait(t))
		require.Error(t, conn.Delete("/x", -1))
		require.Equal(t, fault.Counts{fault.OpDelete: 1}, srv.Requests())
		require.Equal(t, 1, rule.Hits(), "ResetCounts keeps the hits")
	})
}

func TestCountsAreCopies(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, create(connect(t, srv, "a"), "/x"))
		counts := srv.Client("a").Requests()
		counts[fault.OpCreate] = 7
		require.Equal(t, 1, srv.Client("a").Requests()[fault.OpCreate])
	})
}

func TestCodesAreErrors(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", zktest.NoNode)
	require.True(t, errors.Is(err, zktest.NoNode))
	require.False(t, errors.Is(err, zktest.NodeExists))
	require.EqualError(t, zktest.NoNode, "zookeeper: no node (-101)")
	require.EqualError(t, zktest.Code(-77), "zookeeper: error (-77)")
}
