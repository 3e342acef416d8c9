package counter_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// lost are the ways to lose a connection at a request. The server gets the request, or not.
var lost = map[string]fault.Action{"before": fault.DropBefore(), "after": fault.DropAfter()}

// requests is more requests than three updates take.
const requests = 12

// The connection is lost at each request in turn, before or after it was applied. Every update is
// applied once, and reported as applied.
func TestUpdatesWithALostAnswerAreAppliedOnceAndReportedAsApplied(t *testing.T) {
	updates := map[string]func(t *testing.T, ctx context.Context, c *framework.Client){
		"add": func(t *testing.T, ctx context.Context, c *framework.Client) {
			a := newAtomic(t, c, path)
			for i := range int64(3) {
				added(t, a, 7, 7*(i+1))
			}
		},
		"set": func(t *testing.T, ctx context.Context, c *framework.Client) {
			a := newAtomic(t, c, path)
			for i := range int64(3) {
				require.NoError(t, a.Set(ctx, 7*(i+1)))
			}
		},
		"compare and set": func(t *testing.T, ctx context.Context, c *framework.Client) {
			a := newAtomic(t, c, path)
			for i := range int64(3) {
				wrote, err := a.CompareAndSet(ctx, 7*i, 7*(i+1))
				require.NoError(t, err)
				require.True(t, wrote)
			}
		},
		"compare versions and set": func(t *testing.T, ctx context.Context, c *framework.Client) {
			v := newValue(t, c, path, "12345678")
			now, err := v.GetVersioned(ctx)
			require.NoError(t, err)
			for i := range uint64(3) {
				var wrote bool
				now, wrote, err = v.CompareAndSet(ctx, now, binary.BigEndian.AppendUint64(nil, 7*(i+1)))
				require.NoError(t, err)
				require.True(t, wrote)
			}
		},
	}
	for name, update := range updates {
		for when, action := range lost {
			for i := range requests {
				t.Run(fmt.Sprintf("%s/%s/%d", name, when, i), func(t *testing.T) {
					virtually(t, func(t *testing.T, srv *zktest.Server) {
						c := client(t, srv, "c")
						srv.On(fault.Match{Client: "c", Op: fault.AnyOp, Skip: i}, action)
						update(t, testzk.Context(t), c)
						require.Equal(t, int64(21), stored(t, srv, path))
					})
				})
			}
		}
	}
}

// After the lost answer another client writes before this one has reconnected.
func TestLostAnswerBehindWhichAnotherClientWrites(t *testing.T) {
	for when, action := range lost {
		t.Run(when, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, b := newAtomic(t, client(t, srv, "a"), path), newAtomic(t, client(t, srv, "b"), path)
				added(t, a, 1, 1)
				added(t, b, 10, 11)
				added(t, a, 1, 12)
				rule := srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Path: path}, action)
				srv.Client("a").Refuse(true)
				done := make(chan error)
				go func() {
					_, err := a.Add(background(), 1)
					done <- err
				}()
				require.NoError(t, rule.Wait(testzk.Context(t)))
				time.Sleep(time.Millisecond)
				for range 10 {
					_, err := b.Add(testzk.Context(t), 10)
					require.NoError(t, err)
				}
				srv.Client("a").Refuse(false)
				require.NoError(t, <-done)
				require.Equal(t, int64(113), stored(t, srv, path))
			})
		})
	}
}

// The caller leaves while the answer is missing. What it adds later does not depend on it.
func TestContextThatEndsWithoutAnAnswerIsAnUnknownOutcome(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "a"), path)
		added(t, a, 1, 1)
		for i := range int64(3) {
			srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Path: path}, fault.Delay(time.Second))
			ctx, cancel := context.WithTimeout(background(), time.Millisecond*100)
			_, err := a.Add(ctx, 1)
			failed(t, err, framework.Unknown, context.DeadlineExceeded)
			cancel()
			added(t, a, 10, 1+11*(i+1)) // behind the request that was late
		}
	})
}

// The old request waits at a server that the session has left. It is applied after the next update,
// or never; the caller was told that it is unknown.
func TestContextThatEndsBeforeTheRequestIsNotApplied(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "a"), path)
		added(t, a, 1, 1)
		srv.Client("a").Refuse(true)
		srv.Client("a").Drop()
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(background(), time.Second)
		defer cancel()
		_, err := a.Add(ctx, 1)
		failed(t, err, framework.NotApplied, context.DeadlineExceeded)
		srv.Client("a").Refuse(false)
		added(t, a, 10, 11)
	})
}

// The session is lost while an answer is missing. If nothing was written since, the update is made
// in the next session. If the one write since then was another client's, the update is made again.
// Otherwise nothing can tell.
func TestLostSessionInDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		action fault.Action
		writes int // of another client while the session is lost
		want   int64
		known  bool
	}{
		"not applied":                    {fault.DropBefore(), 0, 2, true},
		"not applied, and another write": {fault.DropBefore(), 1, 12, true},
		"not applied, and other writes":  {fault.DropBefore(), 2, 21, false},
		"applied":                        {fault.DropAfter(), 0, 2, false},
		"applied, and another write":     {fault.DropAfter(), 1, 12, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				c := client(t, srv, "a", framework.WithRetry(retry.Forever(100*time.Millisecond)))
				a := newAtomic(t, c, path)
				other := newAtomic(t, client(t, srv, "b"), path)
				added(t, a, 1, 1)
				rule := srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Path: path}, test.action)
				srv.Client("a").Refuse(true)
				done := make(chan error)
				go func() {
					_, err := a.Add(background(), 1)
					done <- err
				}()
				require.NoError(t, rule.Wait(testzk.Context(t)))
				time.Sleep(time.Millisecond)
				for range test.writes {
					_, err := other.Add(testzk.Context(t), 10)
					require.NoError(t, err)
				}
				expire(t, srv, "a")
				srv.Client("a").Refuse(false)
				err := <-done
				if test.known {
					require.NoError(t, err)
				} else {
					failed(t, err, framework.Unknown, framework.ErrSessionLost)
				}
				require.Equal(t, test.want, stored(t, srv, path))
				added(t, a, 100, test.want+100)
			})
		})
	}
}

// CURATOR-688: versions wrap around. At -1 a request cannot name the version. The connection is lost
// at each request, and another client writes in between.
func TestUpdatesGoOnWhenVersionsWrapAround(t *testing.T) {
	for _, from := range []int32{math.MaxInt32, math.MinInt32, -3, -2, -1} {
		for when, action := range lost {
			for i := range 6 {
				t.Run(fmt.Sprintf("%d/%s/%d", from, when, i), func(t *testing.T) {
					virtually(t, func(t *testing.T, srv *zktest.Server) {
						require.NoError(t, srv.Create("/a", make([]byte, 8)))
						require.NoError(t, srv.SetVersion("/a", from))
						a, b := newAtomic(t, client(t, srv, "a"), "/a"), newAtomic(t, client(t, srv, "b"), "/a")
						added(t, a, 1, 1)
						require.NoError(t, srv.SetVersion("/a", from))
						srv.On(fault.Match{Client: "a", Op: fault.AnyOp, Skip: i}, action)
						for n := range int64(4) {
							added(t, a, 1, 11*n+2)
							added(t, b, 10, 11*n+12)
						}
						require.Equal(t, int64(45), stored(t, srv, "/a"))
					})
				})
			}
		}
	}
}

func TestVersionsCompareWhenTheyWrapAround(t *testing.T) {
	for _, from := range []int32{math.MaxInt32, math.MinInt32, -2, -1} {
		for i := range 8 {
			t.Run(fmt.Sprintf("%d/%d", from, i), func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					ctx := testzk.Context(t)
					require.NoError(t, srv.Create("/a", make([]byte, 4)))
					require.NoError(t, srv.SetVersion("/a", from))
					n := newCount(t, client(t, srv, "a"), "/a", 0)
					first, err := n.GetVersioned(ctx)
					require.NoError(t, err)
					srv.On(fault.Match{Client: "a", Op: fault.AnyOp, Skip: i}, fault.DropAfter())
					now := first
					for i := range int32(4) {
						var wrote bool
						now, wrote, err = n.CompareAndSet(ctx, now, i+1)
						require.NoError(t, err)
						require.True(t, wrote)
					}
					_, wrote, err := n.CompareAndSet(ctx, first, 100)
					require.NoError(t, err)
					require.False(t, wrote)
				})
			})
		}
	}
}

// Another client deletes the node, with the marker, or only the marker, or overwrites it.
func TestMarkerThatOthersChange(t *testing.T) {
	marker := func(t *testing.T, srv *zktest.Server) string {
		children, err := srv.Children(path)
		require.NoError(t, err)
		require.Len(t, children, 1)
		return path + "/" + children[0]
	}
	for name, harm := range map[string]func(t *testing.T, srv *zktest.Server){
		"deleted": func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.Delete(marker(t, srv))) },
		"overwritten": func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.Set(marker(t, srv), []byte("x")))
		},
		"node deleted": func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.Delete(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a := newAtomic(t, client(t, srv, "a"), path)
				added(t, a, 1, 1)
				harm(t, srv)
				want := int64(2)
				if name == "node deleted" {
					want = 1
				}
				added(t, a, 1, want)
				idle()
				children, err := srv.Children(path)
				require.NoError(t, err)
				require.Empty(t, children)
			})
		})
	}
}

// A client without a marker compares data: what only this client can have written was written by it.
func TestLostAnswerWithoutAMarker(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		c := client(t, srv, "c")
		_, err := c.Create(ctx, "/a", make([]byte, 8), framework.ACL(zk.WorldACL(zk.PermRead|zk.PermWrite)...))
		require.NoError(t, err)
		a := newAtomic(t, c, "/a")
		added(t, a, 1, 1)
		srv.On(fault.Match{Client: "c", Op: fault.OpMulti, Path: "/a"}, fault.DropBefore())
		added(t, a, 1, 2)
		srv.On(fault.Match{Client: "c", Op: fault.OpMulti, Path: "/a"}, fault.DropAfter())
		_, err = a.Add(ctx, 1)
		require.Error(t, err)
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		added(t, a, 1, 4)
	})
}

// Curator: testWithError and testBasic of CachedAtomicLong.
func TestSequenceTakesBlocks(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		a := newAtomic(t, client(t, srv, "a", framework.WithRetry(retry.Never())), path)
		s, err := counter.NewSequence(a, 100)
		require.NoError(t, err)
		for i := range int64(200) {
			n, err := s.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, i+1, n)
		}
		require.Equal(t, int64(200), stored(t, srv, path))
		srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Path: path}, fault.DropAfter())
		_, err = s.Next(ctx)
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		require.NoError(t, a.Set(ctx, 1000)) // waits for the connection
		n, err := s.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(1001), n)
	})
}

// refusing makes connections that go to one server, and refuses to continue one session.
type refusing struct {
	link *zktest.Client

	mu      sync.Mutex
	address string
	refused int64 // the session
}

func (d *refusing) set(address string, refused int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.address, d.refused = address, refused
}

func (d *refusing) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	d.mu.Lock()
	address, refused := d.address, d.refused
	d.mu.Unlock() // virtual time would stand still while another goroutine waits for it
	conn, err := d.link.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &refusingConn{Conn: conn, session: refused}, nil
}

type refusingConn struct {
	net.Conn
	session int64
	begun   bool
}

// Write is called with one whole frame at a time. In the first one the session follows 20 bytes.
func (c *refusingConn) Write(frame []byte) (int, error) {
	if !c.begun && c.session != 0 && int64(binary.BigEndian.Uint64(frame[20:])) == c.session {
		return 0, net.ErrClosed
	}
	c.begun = true
	return c.Conn.Write(frame)
}

// The request of a session that is lost for the client waits at a server. It is applied after the
// client has read the node in the next session, and before it sends the update again.
func TestLateRequestOfALostSession(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		follower := srv.Follower(0)
		way := &refusing{link: srv.Client("a")}
		way.set(follower.MemAddr(), 0)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(way.DialContext),
			framework.WithLossDeadline(0.4), framework.WithRetry(retry.Forever(100*time.Millisecond)))
		a := newAtomic(t, c, path)
		added(t, a, 1, 1)
		session, err := c.Session(testzk.Context(t))
		require.NoError(t, err)

		follower.HoldRequests()
		done := make(chan error)
		go func() {
			_, err := a.Add(background(), 1)
			done <- err
		}()
		time.Sleep(100 * time.Millisecond) // the request has reached the server
		again := srv.On(fault.Match{Client: "a", Op: fault.OpMulti, Path: path}, fault.Hold())
		way.set(srv.MemAddr(), session.ID())
		srv.Client("a").Drop()
		require.NoError(t, again.Wait(testzk.Context(t)))
		follower.ReleaseRequests()
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, int64(2), stored(t, srv, path), "the late request is applied")
		again.Release()
		failed(t, <-done, framework.Unknown, framework.ErrSessionLost)
		require.Equal(t, int64(2), stored(t, srv, path))
	})
}
