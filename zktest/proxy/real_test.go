package proxy

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest/ensemble"
	"github.com/docent-zk/docent/zktest/fault"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestInFrontOfTheRealServer(t *testing.T) {
	realzk.Need(t)
	e := ensemble.Start(t, 1)
	p := Start(t, e.Servers()[0].Addr())
	conn, events, err := zk.Connect([]string{p.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	session := func() {
		t.Helper()
		for {
			select {
			case event := <-events:
				if event.State == zk.StateHasSession {
					return
				}
			case <-timeout(t).Done():
				require.FailNow(t, "no session")
			}
		}
	}
	session()
	acl := zk.WorldACL(zk.PermAll)

	_, err = conn.Create("/a", nil, 0, acl)
	require.NoError(t, err)
	_, err = conn.Multi(&zk.CheckVersionRequest{Path: "/a", Version: 0}, &zk.DeleteRequest{Path: "/a", Version: -1})
	require.NoError(t, err)
	counts := p.Requests()
	require.Equal(t, 1, counts[fault.OpCreate])
	require.Equal(t, 1, counts[fault.OpMulti])
	require.Equal(t, 2, counts.Total())

	p.On(fault.Match{Op: fault.OpCreate, Path: "/before"}, fault.DropBefore())
	_, err = conn.Create("/before", nil, 0, acl)
	require.Error(t, err)
	session()
	exists, _, err := conn.Exists("/before")
	require.NoError(t, err)
	require.False(t, exists)

	p.On(fault.Match{Op: fault.OpCreate, Path: "/after"}, fault.DropAfter())
	_, err = conn.Create("/after", nil, 0, acl)
	require.Error(t, err)
	session()
	exists, _, err = conn.Exists("/after")
	require.NoError(t, err)
	require.True(t, exists)

	require.NoError(t, p.Refuse(true))
	require.NoError(t, p.Refuse(false))
	session()
}
