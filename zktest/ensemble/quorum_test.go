//go:build unix

package ensemble

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

func TestEnsemble(t *testing.T) {
	realzk.Need(t)
	// No server is slow enough to be left, but one that stands still for 12 s.
	e := Start(t, 3, WithTick(200*time.Millisecond), WithConfig("syncLimit", "60"))
	conn := client(t, e.Connect())
	create(t, conn, "/data", "survives")

	t.Run("kill -9 of the leader elects another", func(t *testing.T) {
		old := mustLead(t, e)
		require.NoError(t, old.Kill())
		next := mustLead(t, e)
		require.NotSame(t, old, next)
		require.NoError(t, e.WaitReady(timeout(t)))
		require.Equal(t, "survives", get(t, conn, "/data"))

		require.NoError(t, old.Start(timeout(t)))
		require.NoError(t, e.WaitReady(timeout(t)))
		require.NotSame(t, old, mustLead(t, e), "the old leader comes back as a follower")
	})

	t.Run("a paused leader is replaced and comes back", func(t *testing.T) {
		old := mustLead(t, e)
		require.NoError(t, old.Pause())
		require.NoError(t, e.WaitReady(timeout(t)))
		next := mustLead(t, e)
		require.NotSame(t, old, next)
		// The client connects only to s: the driver would wait for a minute if it picked the paused
		// server.
		create(t, client(t, next.Addr()), "/later", "data")

		require.NoError(t, old.Resume())
		eventually(t, "the old leader follows", func() bool { // until then it takes itself for the leader
			answer, err := old.Command(timeout(t), "srvr")
			return err == nil && strings.Contains(answer, "Mode: follower")
		})
		require.NoError(t, e.WaitReady(timeout(t)))
		require.Equal(t, "data", get(t, client(t, old.Addr()), "/later"))
		require.NotSame(t, old, mustLead(t, e))
	})

	t.Run("a wiped member copies the data", func(t *testing.T) {
		s := follower(t, e)
		require.NoError(t, s.Stop())
		require.NoError(t, s.Wipe())
		require.NoError(t, s.Start(timeout(t)))
		require.NoError(t, e.WaitReady(timeout(t)))
		require.Equal(t, "survives", get(t, client(t, s.Addr()), "/data"))
	})

	t.Run("without a quorum a server listens and does not serve", func(t *testing.T) {
		servers := e.Servers()
		require.NoError(t, servers[0].Kill())
		require.NoError(t, servers[1].Kill())
		require.NoError(t, servers[2].Stop())
		require.NoError(t, servers[2].Start(timeout(t)))
		answer, err := servers[2].Command(timeout(t), "srvr")
		require.NoError(t, err)
		require.Contains(t, answer, "not currently serving")
		short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, e.WaitReady(short), context.DeadlineExceeded)
		_, err = e.Leader(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		require.NoError(t, servers[0].Start(timeout(t)))
		require.NoError(t, servers[1].Start(timeout(t)))
		require.NoError(t, e.WaitReady(timeout(t)))
		require.Equal(t, "survives", get(t, conn, "/data"))
	})

	t.Run("close leaves no process", func(t *testing.T) {
		var pids []int
		for _, s := range e.Servers() {
			p, _ := s.current()
			require.NotNil(t, p)
			pids = append(pids, p.os.Pid)
		}
		require.NoError(t, e.Close())
		for _, pid := range pids {
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		}
		require.NoDirExists(t, e.dir)
	})
}

func TestFiveServersSurviveTwo(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 5)
	for range 2 {
		require.NoError(t, mustLead(t, e).Kill())
		require.NoError(t, e.WaitReady(timeout(t)))
	}
}

func mustLead(t *testing.T, e *Ensemble) *Server {
	t.Helper()
	leader, err := e.Leader(timeout(t))
	require.NoError(t, err)
	return leader
}

func follower(t *testing.T, e *Ensemble) *Server {
	t.Helper()
	leader := mustLead(t, e)
	for _, s := range e.Servers() {
		if s != leader {
			return s
		}
	}
	require.FailNow(t, "no follower")
	return nil
}
