package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// byHost returns a dialer that reaches one server under any host name. A connection has the faults
// of the client with that name.
func byHost(srv *zktest.Server) framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		name, _, _ := strings.Cut(address, ":")
		return srv.Client(name).DialContext(ctx, network, srv.MemAddr())
	})
}

func TestNewServersEndTheAttemptToReachAnOldOne(t *testing.T) {
	for name, spoil := range map[string]func(old *zktest.Client){
		"dialling":  func(old *zktest.Client) { old.Cut() },
		"handshake": func(old *zktest.Client) { old.Blackhole(true) },
		"pause":     func(old *zktest.Client) { old.Refuse(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				spoil(srv.Client("old"))
				c := testzk.Client(t, "old:1", byHost(srv), framework.WithSessionTimeout(time.Minute),
					framework.WithConnectTimeout(10*time.Second), framework.WithRandom(func(int64) int64 { return 0 }))
				time.Sleep(5*time.Minute + 500*time.Millisecond) // between two attempts or during one
				begun := time.Now()
				require.NoError(t, c.SetServers("new:1"))
				require.NoError(t, c.WaitConnected(t.Context()))
				require.Less(t, time.Since(begun), 100*time.Millisecond)
			})
		})
	}
}

func TestServerIsThatOfTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		for _, host := range []string{"one", "two", "["} {
			srv.Client(host).Refuse(true)
		}
		c := testzk.Client(t, "one:1,two,[::1]:3", byHost(srv), longSession())
		require.Empty(t, c.Server(), "before the first connection")
		srv.Client("two").Refuse(false)
		require.NoError(t, c.WaitConnected(t.Context()))
		require.Equal(t, "two:2181", c.Server())
		require.Equal(t, "two:2181", c.Namespace("view").Server())
		require.NoError(t, c.SetServers("three:3"))
		time.Sleep(time.Minute)
		require.Equal(t, "three:3", c.Server())
		srv.Client("three").Refuse(true)
		srv.Client("three").Drop()
		time.Sleep(time.Second)
		require.Equal(t, framework.Suspended, c.State())
		require.Empty(t, c.Server(), "without a connection")
		srv.Client("three").Refuse(false)
		require.NoError(t, c.WaitConnected(t.Context()))
		require.Equal(t, "three:3", c.Server())
		require.NoError(t, c.Close())
		require.Empty(t, c.Server(), "after Close")
	})
	require.Empty(t, (&framework.Client{}).Server())
}

// The dialer ignores its context and connects after the attempt was canceled.
func TestConnectionToAnOldServerThatSucceedsLateIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var last atomic.Value
		dial := func(_ context.Context, network, address string) (net.Conn, error) {
			time.Sleep(100 * time.Millisecond)
			last.Store(address)
			return srv.Client("a").DialContext(context.Background(), network, srv.MemAddr())
		}
		c := testzk.Client(t, "old:1", framework.WithDialer(dial))
		synctest.Wait()
		require.NoError(t, c.SetServers("new:1"))
		require.NoError(t, c.WaitConnected(t.Context()))
		require.Equal(t, "new:1", last.Load())
	})
}

func TestLostSessionIsClosedThroughNewServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := testzk.Connected(t, "old:1", byHost(srv), framework.WithSessionTimeout(time.Minute))
		_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral())
		require.NoError(t, err)
		s := session(t, c)
		srv.Client("old").Refuse(true)
		srv.Client("old").Reset()
		<-s.Done()
		time.Sleep(time.Second)
		require.True(t, srv.Exists("/e"))
		require.NoError(t, c.SetServers("new:1"))
		time.Sleep(time.Second)
		require.False(t, srv.Exists("/e"), "the session was not closed and waits for its timeout")
	})
}

func TestAddedServersAreUsedWhenAServerFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := testzk.Connected(t, "a:1", byHost(srv), framework.WithSessionTimeout(30*time.Second))
		s := session(t, c)
		require.NoError(t, c.SetServers("a:1,b:1,c:1"))
		time.Sleep(time.Minute)
		srv.Client("a").Freeze()
		time.Sleep(time.Minute)
		require.NoError(t, s.Err(), "the other servers could be reached")
	})
}

func TestSetServersInListenersAndDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		for i := range 20 {
			c := testzk.Client(t, "a:1,b:1", byHost(srv), framework.WithAuth("digest", []byte("u:p")))
			c.Listen(func(change framework.StateChange) {
				_ = c.SetServers(fmt.Sprintf("a:1,b:1,c:%d", 1+change.State))
			})
			var replacing sync.WaitGroup
			for j, servers := range []string{"a:1", "b:1", "c:1,d:1"} {
				replacing.Go(func() {
					var err error
					for ; err == nil; err = c.SetServers(servers) {
						time.Sleep(time.Duration(j+1) * 200 * time.Microsecond)
					}
					if !errors.Is(err, framework.ErrClosed) {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Duration(i%10) * time.Millisecond)
			begun := time.Now()
			require.NoError(t, c.Close())
			require.Less(t, time.Since(begun), soon)
			replacing.Wait()
		}
	})
}
