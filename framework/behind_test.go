package framework_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// listed is the result of a list.
type listed struct {
	children []string
	err      error
}

func startList(s *framework.Session, path string) <-chan listed {
	result := make(chan listed, 1)
	bridge.OfSession(s).StartChildren(path, func(children []string, err error) { result <- listed{children, err} })
	return result
}

// sessionOn returns a session on a server in virtual time.
func sessionOn(t *testing.T, srv *zktest.Server) *framework.Session {
	t.Helper()
	return session(t, testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext)))
}

func TestRequestsBehindACreateAreSentWithItAndSeeTheNode(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := sessionOn(t, srv)
		require.NoError(t, srv.Create("/a", nil))
		for name, create := range map[string]func(framework.CreateOption) (framework.Result, error){
			"alone": func(o framework.CreateOption) (framework.Result, error) {
				return s.CreateResult(t.Context(), "/a/n-", nil, framework.Sequential(), o)
			},
			"in a transaction": func(o framework.CreateOption) (framework.Result, error) {
				all, err := s.Multi(t.Context(), framework.CheckOp("/a", -1),
					framework.CreateOp("/a/n-", nil, framework.Sequential(), o))
				return all[1], err
			},
		} {
			var list <-chan listed
			sent := len(srv.Trace().Entries)
			created, err := create(bridge.Behind(func() { list = startList(s, "/a") }))
			require.NoError(t, err, name)
			shown := <-list
			require.NoError(t, shown.err, name)
			require.Contains(t, shown.children, strings.TrimPrefix(created.Path, "/a/"), name)
			stat, err := s.Exists(t.Context(), created.Path)
			require.NoError(t, err)
			require.Equal(t, stat.Czxid, created.Czxid, name)
			asked := srv.Trace().Entries[sent:]
			require.Equal(t, "getChildren2", asked[1].What, name)
			require.Equal(t, asked[0].At, asked[1].At, "%s: the requests were not sent together", name)
		}
	})
}

func TestStartedListsWaitForAConnection(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := sessionOn(t, srv)
		client := srv.Client("c")
		client.Refuse(true)
		client.Drop()
		time.Sleep(100 * time.Millisecond) // until the client has noticed
		list := startList(s, "/")
		client.Refuse(false)
		shown := <-list
		require.NoError(t, shown.err)
		require.Contains(t, shown.children, "zookeeper")

		client.Refuse(true)
		client.Drop()
		time.Sleep(100 * time.Millisecond) // until the client has noticed
		list = startList(s, "/")
		time.Sleep(testzk.SessionTimeout)
		require.Error(t, (<-list).err, "the list succeeded without a connection")
		require.ErrorIs(t, (<-startList(s, "/")).err, framework.ErrSessionLost)
	})
}

func TestStartedReadsSetWatches(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := sessionOn(t, srv)
		require.NoError(t, srv.Create("/a", []byte("x")))
		watches := make(chan *framework.Watch, 1)
		errs := make(chan error, 2)
		bridge.OfSession(s).Together(func() {
			bridge.OfSession(s).StartGetW("/a", func(data []byte, _ *zk.Stat, w *framework.Watch, err error) {
				if string(data) == "x" && err == nil {
					watches <- w
				}
			})
			bridge.OfSession(s).StartGetW("/none", func(_ []byte, _ *zk.Stat, _ *framework.Watch, err error) {
				errs <- err
			})
		})
		watch := <-watches
		require.ErrorIs(t, <-errs, zk.ErrNoNode)
		require.NoError(t, srv.Delete("/a"))
		<-watch.Fired()
		require.Equal(t, zk.EventNodeDeleted, watch.Event())

		var zero *framework.Session
		bridge.OfSession(zero).Together(func() {
			bridge.OfSession(zero).StartGetW("/a", func(_ []byte, _ *zk.Stat, _ *framework.Watch, err error) {
				errs <- err
			})
		})
		require.ErrorIs(t, <-errs, framework.ErrZeroValue)
		require.ErrorIs(t, (<-startList(s, "no path")).err, framework.ErrInvalidPath)
	})
}
