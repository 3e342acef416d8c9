package persistent_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestNodeIsThereUntilClose(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		n := newNode(t, c, path)
		require.Empty(t, n.Path())
		require.ErrorIs(t, n.WaitReady(t.Context()), persistent.ErrNotStarted)
		require.NoError(t, n.Start(t.Context()))
		require.ErrorIs(t, n.Start(t.Context()), persistent.ErrStarted)
		await(t, n)
		require.Equal(t, path, n.Path())
		require.NoError(t, n.Err())
		require.Equal(t, "/services container\n/services/orders container\n"+path+` "`+data+"\" ephemeral of a\n",
			srv.Tree())
		require.NoError(t, n.Close())
		require.False(t, srv.Exists(path))
		require.Empty(t, n.Path())
		require.ErrorIs(t, n.Err(), persistent.ErrClosed)
		<-n.Done()
		require.NoError(t, n.Close())
		require.ErrorIs(t, n.WaitReady(t.Context()), persistent.ErrClosed)
		require.ErrorIs(t, n.SetData(nil), persistent.ErrClosed)
		require.ErrorIs(t, n.Start(t.Context()), persistent.ErrClosed)
	})
}

func TestNodeIsDeletedWhenTheContextOfStartEnds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := newNode(t, client(t, srv, "a"), path)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, n.Start(ctx))
		await(t, n)
		cancel()
		settle()
		require.False(t, srv.Exists(path))
		<-n.Done()
		require.ErrorIs(t, n.Err(), persistent.ErrClosed)
		require.ErrorIs(t, n.Err(), context.Canceled)
		require.NoError(t, n.Close())
	})
}

func TestNodeComesBackAfterALostSession(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, srv *zktest.Server){
		"expired": func(t *testing.T, srv *zktest.Server) { expire(t, srv, "a") },
		"cut off": func(_ *testing.T, srv *zktest.Server) { srv.Client("a").Cut(); outage(); srv.Client("a").Heal() },
		"server restarted": func(t *testing.T, srv *zktest.Server) {
			srv.Stop()
			outage()
			require.NoError(t, srv.Start())
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				n := kept(t, client(t, srv, "a"), path)
				before := owner(t, srv, path)
				lose(t, srv)
				settle()
				outage()
				await(t, n)
				require.NotEqual(t, before, owner(t, srv, path))
				require.Equal(t, data, content(t, srv, path))
				require.NoError(t, n.Close())
				require.False(t, srv.Exists(path))
			})
		})
	}
}

// WaitReady must not return for the node of a lost session.
func TestNodeOfALostSessionIsNotThere(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path)
		srv.Client("a").Cut()
		time.Sleep(testzk.SessionTimeout)
		require.Empty(t, n.Path())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, n.WaitReady(ctx), context.DeadlineExceeded)
		srv.Client("a").Heal()
		await(t, n)
	})
}

// The node of the lost session is still there when the client has the next session.
func TestNodeOfAFormerSessionIsWaitedFor(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path, persistent.WithOccupiedTimeout(0))
		former := owner(t, srv, path)
		// The server does not end the session before it expires.
		closing := srv.On(fault.Match{Op: fault.OpCloseSession, Times: fault.Always}, fault.DropBefore())
		srv.Client("a").Cut()
		time.Sleep(testzk.SessionTimeout * 3 / 4)
		srv.Client("a").Heal()
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, former, owner(t, srv, path), "the test is in vain if the session has expired")
		require.NoError(t, n.Err())
		require.Empty(t, n.Path(), "the node is that of the lost session")
		outage()
		closing.Remove()
		await(t, n)
		require.NotEqual(t, former, owner(t, srv, path))
	})
}

func TestNothingIsWrittenOnAReconnect(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path)
		settle()
		stat, err := srv.Stat(path)
		require.NoError(t, err)
		srv.ResetCounts()
		srv.Client("a").Drop()
		settle()
		await(t, n)
		sent := srv.Client("a").Requests()
		require.Equal(t, 1, sent[fault.OpGetData], "%v", sent)
		for _, op := range []fault.Op{fault.OpCreate, fault.OpSetData, fault.OpDelete, fault.OpExists} {
			require.Zero(t, sent[op], "%v", sent)
		}
		after, err := srv.Stat(path)
		require.NoError(t, err)
		require.Equal(t, stat, after)
	})
}

func TestDataIsWritten(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := newNode(t, client(t, srv, "a"), path)
		require.NoError(t, n.SetData([]byte("before Start")))
		require.NoError(t, n.Start(t.Context()))
		await(t, n)
		require.Equal(t, "before Start", content(t, srv, path))
		text := []byte("new")
		require.NoError(t, n.SetData(text))
		text[0] = 'X'
		await(t, n)
		require.Equal(t, "new", content(t, srv, path))
		require.NoError(t, n.Close())
	})
}

// Only the last data is written, once, and the node is not created again.
func TestDataThatIsSetWhileDisconnectedIsWrittenLater(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path)
		settle()
		before, err := srv.Stat(path)
		require.NoError(t, err)
		srv.Client("a").Refuse(true)
		srv.Client("a").Drop()
		for _, text := range []string{"1", "2", "3"} {
			require.NoError(t, n.SetData([]byte(text)))
			time.Sleep(100 * time.Millisecond)
		}
		srv.Client("a").Refuse(false)
		await(t, n)
		require.Equal(t, "3", content(t, srv, path))
		stat, err := srv.Stat(path)
		require.NoError(t, err)
		require.Equal(t, before.Czxid, stat.Czxid)
		require.EqualValues(t, 1, stat.Version)
	})
}

func TestNodeIsMended(t *testing.T) {
	for name, harm := range map[string]func(srv *zktest.Server) error{
		"deleted":          func(srv *zktest.Server) error { return srv.Delete(path) },
		"with its parents": func(srv *zktest.Server) error { return srv.Delete("/services") },
		"overwritten":      func(srv *zktest.Server) error { return srv.Set(path, []byte("nonsense")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				n := kept(t, client(t, srv, "a"), path)
				require.NoError(t, harm(srv))
				time.Sleep(100 * time.Millisecond) // the first time it is mended at once
				require.Equal(t, data, content(t, srv, path))
				await(t, n)
			})
		})
	}
}

func TestRepairsAreSlowIfTheyDoNotHelp(t *testing.T) {
	for name, harm := range map[string]func(srv *zktest.Server){
		"deleted":     func(srv *zktest.Server) { _ = srv.Delete(path) },
		"overwritten": func(srv *zktest.Server) { _ = srv.Set(path, []byte("nonsense")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				n := kept(t, client(t, srv, "a"), path)
				srv.ResetCounts()
				for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(time.Millisecond) {
					harm(srv)
				}
				sent := srv.Client("a").Requests()
				require.Less(t, sent[fault.OpCreate]+sent[fault.OpCreate2]+sent[fault.OpSetData], 60, "%v", sent)
				settle()
				await(t, n)
				require.Equal(t, data, content(t, srv, path))
				time.Sleep(time.Minute)
				harm(srv)
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, data, content(t, srv, path), "after a calm time it is mended at once")
			})
		})
	}
}

func TestErrorsThatDoNotPassEndTheNode(t *testing.T) {
	readOnly := zk.WorldACL(zk.PermRead)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, c *framework.Client)
		then    func(t *testing.T, n *persistent.Node)
		opts    []persistent.Option
		want    error
	}{
		"no permission to create": {
			prepare: func(t *testing.T, c *framework.Client) {
				_, err := c.Create(t.Context(), "/services", nil, framework.ACL(readOnly...))
				require.NoError(t, err)
			},
			want: zk.ErrNoAuth,
		},
		"no permission to write": {
			then: func(t *testing.T, n *persistent.Node) { await(t, n); require.NoError(t, n.SetData(nil)) },
			opts: []persistent.Option{persistent.WithACL(readOnly...)},
			want: zk.ErrNoAuth,
		},
		"invalid ACL": {
			opts: []persistent.Option{persistent.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "nonsense", ID: "x"})},
			want: zk.ErrInvalidACL,
		},
		"below an ephemeral node": {
			prepare: func(t *testing.T, c *framework.Client) {
				_, err := c.Create(t.Context(), "/services", nil, framework.Ephemeral())
				require.NoError(t, err)
			},
			want: zk.ErrNoChildrenForEphemerals,
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				admin := client(t, srv, "admin")
				if c.prepare != nil {
					c.prepare(t, admin)
				}
				n := started(t, client(t, srv, "a"), path, c.opts...)
				if c.then != nil {
					c.then(t, n)
				}
				closes(t, n.Done(), "the node does not end")
				require.ErrorIs(t, n.Err(), c.want)
				require.ErrorIs(t, n.WaitReady(t.Context()), c.want)
				require.ErrorIs(t, n.SetData(nil), c.want)
				_ = n.Close()
				settle()
				require.False(t, srv.Exists(path))
			})
		})
	}
}

func TestNodeEndsWithItsClient(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				c := client(t, srv, "a")
				n := kept(t, c, path, opts...)
				require.NoError(t, c.Close())
				closes(t, n.Done(), "the node does not end")
				require.ErrorIs(t, n.Err(), framework.ErrClosed)
				if name == "ephemeral" || name == "protected" || name == "sequential" {
					require.NoError(t, n.Close())
				} else {
					require.ErrorIs(t, n.Close(), framework.ErrClosed, "the node may stay")
				}
			})
		})
	}
}

func TestOneNodeOfAClientAtAPath(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		first := kept(t, c, path)
		second := newNode(t, c, path)
		require.ErrorIs(t, second.Start(t.Context()), persistent.ErrOccupied)
		require.NoError(t, first.Close())
		require.NoError(t, second.Start(t.Context()))
		await(t, second)
		require.NoError(t, second.Close())
		require.False(t, srv.Exists(path))
	})
}

func TestCloseDuringAnOutage(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path)
		srv.Client("a").Refuse(true)
		srv.Client("a").Drop()
		time.Sleep(100 * time.Millisecond)
		time.AfterFunc(time.Second, func() { srv.Client("a").Refuse(false) })
		require.NoError(t, n.Close())
		require.False(t, srv.Exists(path))
	})
}

func TestCloseThatIsNotConfirmedIsPending(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		n := kept(t, client(t, srv, "a"), path)
		srv.On(fault.Match{Op: fault.OpDelete, Path: path, Times: fault.Always}, fault.DropBefore())
		begun := time.Now()
		require.ErrorIs(t, n.Close(), persistent.ErrPending)
		require.Equal(t, testzk.SessionTimeout, time.Since(begun))
		require.True(t, srv.Exists(path))
		srv.ResetFaults()
		settle()
		require.False(t, srv.Exists(path))
		require.NoError(t, n.Close())
	})
}
