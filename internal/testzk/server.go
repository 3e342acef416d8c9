package testzk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/sharedzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// Server is a server of one test, which may harm it. It is real if the test binary's servers are.
type Server interface {
	Connect() string
	Kill(t testing.TB)   // at once; what it has answered is kept
	Wipe(t testing.TB)   // after Kill: forgets everything
	Start(t testing.TB)  // after Kill: on the same port
	Pause(t testing.TB)  // is silent, and keeps all connections
	Resume(t testing.TB) // after Pause
}

// Seldom is an interval between two checks for empty containers. It is so long that a test does not
// see the second check.
const Seldom = sharedzk.Seldom

// Own starts a server that checks for empty containers at the given intervals.
func Own(t testing.TB, reapEvery time.Duration) Server {
	t.Helper()
	interval := sharedzk.Millis(reapEvery)
	if realzk.Wanted() == "" {
		return ownServer{zktest.Start(t, append(settings(), zktest.WithConfig(sharedzk.ReapSetting, interval))...)}
	}
	e := ensemble.Start(t, 1, ensemble.WithTick(sharedzk.Tick), ensemble.WithProperty(sharedzk.ReapSetting, interval))
	return realServer{e}
}

type ownServer struct{ srv *zktest.Server }

func (s ownServer) Connect() string    { return s.srv.Addr() }
func (s ownServer) Kill(testing.TB)    { s.srv.Stop() }
func (s ownServer) Wipe(t testing.TB)  { require.NoError(t, s.srv.Wipe()) }
func (s ownServer) Start(t testing.TB) { require.NoError(t, s.srv.Start()) }

func (s ownServer) Pause(testing.TB)  { s.srv.Pause() }
func (s ownServer) Resume(testing.TB) { s.srv.Resume(zktest.ExpireFirst) }

type realServer struct{ *ensemble.Ensemble }

func (s realServer) server() *ensemble.Server { return s.Servers()[0] }

func (s realServer) Kill(t testing.TB)   { require.NoError(t, s.server().Kill()) }
func (s realServer) Wipe(t testing.TB)   { require.NoError(t, s.server().Wipe()) }
func (s realServer) Start(t testing.TB)  { require.NoError(t, s.server().Start(Context(t))) }
func (s realServer) Pause(t testing.TB)  { require.NoError(t, s.server().Pause()) }
func (s realServer) Resume(t testing.TB) { require.NoError(t, s.server().Resume()) }
