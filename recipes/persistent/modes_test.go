package persistent_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
)

const ttl = 6 * time.Second

var modes = map[string][]persistent.Option{
	"ephemeral":                nil,
	"protected":                {persistent.WithProtection()},
	"sequential":               {persistent.WithSequence()},
	"container":                {persistent.WithContainer()},
	"persistent":               {persistent.WithPersistence()},
	"ttl":                      {persistent.WithTTL(ttl)},
	"protected and persistent": {persistent.WithProtection(), persistent.WithPersistence()},
}

// fast makes the server delete empty containers and expired nodes soon.
var fast = zktest.WithConfig("znode.container.checkIntervalMs", "1000")

func TestEachModeIsKept(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				n := kept(t, client(t, srv, "a"), path, opts...)
				at := n.Path()
				require.Equal(t, data, content(t, srv, at))
				require.NoError(t, n.SetData([]byte("new")))
				await(t, n)
				require.Equal(t, "new", content(t, srv, at))
				require.NoError(t, srv.Delete(at))
				settle()
				await(t, n)
				require.Equal(t, "new", content(t, srv, n.Path()))
				expire(t, srv, "a")
				settle()
				await(t, n)
				siblings, err := srv.Children("/services/orders")
				require.NoError(t, err)
				require.Len(t, siblings, 1)
				require.Equal(t, "/services/orders/"+siblings[0], n.Path())
				require.NoError(t, n.Close())
				siblings, err = srv.Children("/services/orders")
				require.NoError(t, err)
				require.Empty(t, siblings)
			})
		})
	}
}

func TestNodeOfAnotherModeSurvivesTheSession(t *testing.T) {
	for _, name := range []string{"container", "persistent", "ttl", "protected and persistent"} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				n := kept(t, client(t, srv, "a"), path, modes[name]...)
				before, err := srv.Stat(n.Path())
				require.NoError(t, err)
				expire(t, srv, "a")
				require.NoError(t, n.SetData([]byte("new")))
				settle()
				await(t, n)
				after, err := srv.Stat(n.Path())
				require.NoError(t, err)
				require.Equal(t, before.Czxid, after.Czxid)
				require.Equal(t, "new", content(t, srv, n.Path()))
			})
		})
	}
}

func TestNodeWithATimeToLiveIsTouched(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		n := kept(t, c, path, persistent.WithTTL(ttl))
		before, err := srv.Stat(path)
		require.NoError(t, err)
		time.Sleep(10 * ttl)
		after, err := srv.Stat(path)
		require.NoError(t, err)
		require.Equal(t, before.Czxid, after.Czxid, "it was deleted in between")
		require.InDelta(t, 30, after.Version, 3)
		srv.Client("a").Cut()
		time.Sleep(2 * ttl)
		require.False(t, srv.Exists(path), "nothing has touched it")
		srv.Client("a").Heal()
		settle()
		await(t, n)
		require.True(t, srv.Exists(path))
		require.NoError(t, c.Close())
		time.Sleep(2 * ttl)
		require.False(t, srv.Exists(path))
	}, fast)
}

func TestTimeToLiveNeedsItsServers(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := started(t, client(t, srv, "a"), path, persistent.WithTTL(ttl))
		closes(t, n.Done(), "the node does not end")
		require.ErrorIs(t, n.Err(), framework.ErrUnimplemented)
	}, zktest.WithConfig("extendedTypesEnabled", "false"))
}

func TestContainerThatIsReapedComesBack(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		n := kept(t, c, path, persistent.WithContainer())
		before, err := srv.Stat(path)
		require.NoError(t, err)
		require.NoError(t, srv.Create(path+"/child", nil))
		require.ErrorIs(t, n.Close(), zk.ErrNotEmpty, "the child is another client's")
		ours := func([]byte, zk.Stat) bool { return true }
		n = kept(t, c, path, persistent.WithContainer(), persistent.WithTakeover(ours))
		require.NoError(t, srv.Delete(path+"/child"))
		time.Sleep(5 * time.Second)
		await(t, n)
		after, err := srv.Stat(path)
		require.NoError(t, err)
		require.NotEqual(t, before.Czxid, after.Czxid)
	}, fast)
}
