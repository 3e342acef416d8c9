package acceptance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const p05Queued = 40

// p05Servers are three addresses of one server. A client with several addresses may connect to each
// of them.
const p05Servers = "192.0.2.1:2181,192.0.2.2:2181,192.0.2.3:2181"

// p05Creates are the ways to create an ephemeral node.
var p05Creates = map[string]func(ctx context.Context, c *framework.Client, s *framework.Session, path string) error{
	"in a session": func(ctx context.Context, _ *framework.Client, s *framework.Session, path string) error {
		_, err := s.Create(ctx, path, nil, framework.Ephemeral())
		return err
	},
	"by the client": func(ctx context.Context, c *framework.Client, _ *framework.Session, path string) error {
		_, err := c.Create(ctx, path, nil, framework.Ephemeral())
		return err
	},
	"protected": func(ctx context.Context, c *framework.Client, _ *framework.Session, path string) error {
		_, err := c.Create(ctx, path, nil, framework.Ephemeral(), framework.Sequential(), framework.Protected())
		return err
	},
	"in a transaction": func(ctx context.Context, c *framework.Client, _ *framework.Session, path string) error {
		_, err := c.Multi(ctx, framework.CreateOp(path, nil, framework.Ephemeral()),
			framework.CreateOp(path+"-lasting", nil))
		return err
	},
	"in a transaction of a session": func(ctx context.Context, _ *framework.Client, s *framework.Session,
		path string) error {
		_, err := s.Multi(ctx, framework.CreateOp(path, nil, framework.Ephemeral(), framework.Protected()))
		return err
	},
}

// 40 creates of ephemeral nodes wait for a connection while their session expires, and then the
// client gets a new session. None of them is carried out in it. Each caller is told that the
// session was lost and that the create was not applied.
func TestP05_QueuedCreatesAreNotCarriedOutInTheNextSession(t *testing.T) {
	onlyInProcess(t, virtual)
	for name, create := range p05Creates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := bubbleNew(t, srv, p05Servers, "c")
				s, err := c.Session(t.Context())
				require.NoError(t, err)
				srv.Client("c").Refuse(true)
				srv.Client("c").Drop()
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, framework.Suspended, c.State())
				results := make(chan error, p05Queued)
				for i := range p05Queued {
					go func() { results <- create(t.Context(), c, s, fmt.Sprintf("/n%d", i)) }()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, results, "they did not wait")
				require.NoError(t, s.Err(), "the client gave up the session by itself, so nothing was tested")
				p05ExpireAndReturn(t, srv, c, s)
				for range p05Queued {
					err := <-results
					require.ErrorIs(t, err, framework.ErrSessionLost)
					require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
				}
				time.Sleep(time.Minute)
				require.Empty(t, srv.Tree(), "carried out in the next session")
				requests := srv.Requests()
				require.Zero(t, requests[fault.OpCreate]+requests[fault.OpMulti], "%v", requests)
			})
		})
	}
}

// p05ExpireAndReturn ends the session on the servers and waits until the client has a working new
// one.
func p05ExpireAndReturn(t *testing.T, srv *zktest.Server, c *framework.Client, former *framework.Session) {
	t.Helper()
	onServer, found := srv.Session(former.ID())
	require.True(t, found)
	require.NoError(t, onServer.Expire())
	srv.Client("c").Thaw()
	srv.Client("c").Refuse(false)
	<-former.Done()
	next, err := c.Session(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, former.ID(), next.ID())
	_, err = next.Exists(t.Context(), "/")
	require.NoError(t, err)
}

// 40 creates of ephemeral nodes were sent to the servers when their session expires. None of them
// is carried out in the next session, and each caller is told that the outcome is unknown.
func TestP05_CreatesUnderWayAreNotCarriedOutInTheNextSession(t *testing.T) {
	onlyInProcess(t, virtual)
	for name, create := range p05Creates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := bubbleNew(t, srv, p05Servers, "c")
				s, err := c.Session(t.Context())
				require.NoError(t, err)
				srv.Client("c").Freeze()
				results := make(chan error, p05Queued)
				for i := range p05Queued {
					go func() { results <- create(t.Context(), c, s, fmt.Sprintf("/n%d", i)) }()
				}
				time.Sleep(100 * time.Millisecond)
				require.Empty(t, results, "they did not wait")
				p05ExpireAndReturn(t, srv, c, s)
				for range p05Queued {
					require.Equal(t, framework.Unknown, framework.OutcomeOf(<-results))
				}
				time.Sleep(time.Minute)
				for _, session := range srv.Sessions() {
					require.Empty(t, session.Ephemerals, "carried out in the next session")
				}
			})
		})
	}
}
