package zktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// both runs a test on a running server and on a stopped one.
func both(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	t.Run("running", func(t *testing.T) { bubble(t, test) })
	t.Run("stopped", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			srv.Stop()
			test(t, srv)
		})
	})
}

func TestStateCanBeMadeAndRead(t *testing.T) {
	both(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/a/b/c", []byte("data")))
		require.Equal(t, "/a\n/a/b\n/a/b/c \"data\"\n", srv.Tree())
		require.NoError(t, srv.Create("/a/b/0", nil))
		names, err := srv.Children("/a/b")
		require.NoError(t, err)
		require.Equal(t, []string{"0", "c"}, names)
		require.True(t, srv.Exists("/a/b/0"))
		require.NoError(t, srv.Set("/a/b/c", []byte("other")))
		require.NoError(t, srv.Set("/a/b/c", []byte("newest")))
		data, err := srv.Get("/a/b/c")
		require.NoError(t, err)
		require.Equal(t, "newest", string(data))
		stat, err := srv.Stat("/a/b/c")
		require.NoError(t, err)
		require.Equal(t, int32(2), stat.Version)
		require.Equal(t, int32(len("newest")), stat.DataLength)
		require.Equal(t, time.Now().UnixMilli(), stat.Mtime)
		require.NoError(t, srv.Delete("/a"))
		require.Empty(t, srv.Tree())
		require.False(t, srv.Exists("/a/b/c"))
	})
}

func TestNullDataIsNil(t *testing.T) {
	both(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/parent/null", nil))
		data, err := srv.Get("/parent/null")
		require.NoError(t, err)
		require.Nil(t, data)
		data, err = srv.Get("/parent")
		require.NoError(t, err)
		require.NotNil(t, data, "a created parent has empty data")
		require.Empty(t, data)
	})
}

func TestDataBelongsToTheCaller(t *testing.T) {
	both(t, func(t *testing.T, srv *zktest.Server) {
		data := []byte("data")
		require.NoError(t, srv.Create("/x", data))
		data[0] = '-'
		got, err := srv.Get("/x")
		require.NoError(t, err)
		got[1] = '-'
		got, err = srv.Get("/x")
		require.NoError(t, err)
		require.Equal(t, "data", string(got))
	})
}

func TestErrorsOfStateAreCodesThatNameThePath(t *testing.T) {
	both(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/x", nil))
		get := func(path string) error { _, err := srv.Get(path); return err }
		children := func(path string) error { _, err := srv.Children(path); return err }
		stat := func(path string) error { _, err := srv.Stat(path); return err }
		tests := []struct {
			err  error
			code zktest.Code
			text string
		}{
			{get("/no"), zktest.NoNode, `zktest: get "/no": zookeeper: no node (-101)`},
			{stat("/no"), zktest.NoNode, `zktest: stat "/no": `},
			{children("/no"), zktest.NoNode, `zktest: children "/no": `},
			{srv.Set("/no", nil), zktest.NoNode, `zktest: set "/no": `},
			{srv.Delete("/no"), zktest.NoNode, `zktest: delete "/no": `},
			{srv.Create("/x", nil), zktest.NodeExists, `zktest: create "/x": `},
			{srv.Create("/bad//path", nil), zktest.BadArguments, `"/bad/`},
			{srv.Delete("/zookeeper"), zktest.BadArguments, `zktest: delete "/zookeeper`},
			{srv.Load(map[string]string{"/ok": "", "/q/./r": ""}), zktest.BadArguments, `"/q/.`},
		}
		for _, test := range tests {
			require.ErrorIs(t, test.err, test.code)
			require.ErrorContains(t, test.err, test.text)
		}
	})
}

func TestLoadCreatesParentsAndReplacesData(t *testing.T) {
	both(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Load(map[string]string{"/a/b": "1", "/a": "2", "/c/d": ""}))
		require.Equal(t, "/a \"2\"\n/a/b \"1\"\n/c\n/c/d\n", srv.Tree())
		require.NoError(t, srv.Load(map[string]string{"/a/b": "3", "/e": "4"}))
		require.Equal(t, "/a \"2\"\n/a/b \"3\"\n/c\n/c/d\n/e \"4\"\n", srv.Tree())
	})
}

func TestChangesByTheTestReachWatchers(t *testing.T) {
	changes := map[string]struct {
		change func(*zktest.Server) error
		want   string
	}{
		"set":    {func(srv *zktest.Server) error { return srv.Set("/x", nil) }, "EventNodeDataChanged /x"},
		"delete": {func(srv *zktest.Server) error { return srv.Delete("/x") }, "EventNodeDeleted /x"},
		"load": {
			func(srv *zktest.Server) error { return srv.Load(map[string]string{"/x": "1"}) },
			"EventNodeDataChanged /x",
		},
	}
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/x", nil))
				conn := connect(t, srv, "a")
				_, _, watch, err := conn.GetW("/x")
				require.NoError(t, err)
				require.NoError(t, test.change(srv))
				require.Equal(t, test.want, event(watch))
			})
		})
	}
}

func TestCreateByTheTestReachesWatchersOfTheParent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, _, watch, err := conn.ChildrenW("/")
		require.NoError(t, err)
		require.NoError(t, srv.Create("/x", nil))
		require.Equal(t, "EventNodeChildrenChanged /", event(watch))
	})
}

func TestTestsNeedNoPermission(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.Create("/x", []byte("1"), 0, zk.DigestACL(zk.PermAll, "user", "secret"))
		require.NoError(t, err)
		_, _, err = conn.Get("/x")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		data, err := srv.Get("/x")
		require.NoError(t, err)
		require.Equal(t, "1", string(data))
		require.NoError(t, srv.Set("/x", []byte("2")))
		require.NoError(t, srv.Delete("/x"))
	})
}

func TestTreeShowsKindsOwnersAndACLs(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		named, nameless := connect(t, srv, "alice"), connect(t, srv, "")
		createEphemeral(t, named, "/by-alice")
		createEphemeral(t, nameless, "/by-nobody")
		_, err := named.CreateTTL("/mortal", []byte("x"), zk.FlagTTL, open, 1500*time.Millisecond)
		require.NoError(t, err)
		_, err = named.CreateContainer("/container", nil, 4, open)
		require.NoError(t, err)
		_, err = named.Create("/readable", []byte("a\n\"b\""), 0, zk.WorldACL(zk.PermRead))
		require.NoError(t, err)
		require.NoError(t, srv.Create("/plain/empty", nil))
		want := `
/by-alice ephemeral of alice
/by-nobody ephemeral of s2
/container container
/mortal "x" ttl 1500ms
/plain
/plain/empty
/readable "a\n\"b\"" acl [{1 world anyone}]
`
		require.Equal(t, strings.TrimPrefix(want, "\n"), srv.Tree())
	})
}

func TestVersionCanBeSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		require.NoError(t, srv.Create("/a", nil))
		require.NoError(t, srv.SetVersion("/a", 2147483647))
		stat, err := conn.Set("/a", nil, 2147483647)
		require.NoError(t, err)
		require.EqualValues(t, -2147483648, stat.Version)
		_, err = conn.Set("/a", nil, -5)
		require.ErrorIs(t, err, zk.ErrBadVersion)
		_, err = conn.Set("/a", nil, -2147483648)
		require.NoError(t, err)
		require.ErrorContains(t, srv.SetVersion("/no", 1), "/no")
		require.ErrorContains(t, srv.SetVersion("no", 1), "set the version of")
	})
}

func TestSequenceCanBeSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		require.NoError(t, srv.Create("/q", nil))
		require.NoError(t, srv.SetSequence("/q", 2147483646))
		var made []string
		for range 2 {
			path, err := conn.Create("/q/n", nil, zk.FlagSequence, open)
			require.NoError(t, err)
			made = append(made, path)
		}
		require.Equal(t, []string{"/q/n2147483646", "/q/n2147483647"}, made)
		require.ErrorContains(t, srv.SetSequence("/q", -1), "zktest: next sequence number -1 of /q")
		require.ErrorContains(t, srv.SetSequence("/no", 1), "/no")
	})
}
