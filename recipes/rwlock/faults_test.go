package rwlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// step is a request of a downgrade or an upgrade.
type step struct {
	name   string
	held   func(*rwlock.RWLock) *rwlock.Side
	beside func(context.Context, *rwlock.RWLock) (*recipes.Hold, error)
	match  fault.Match
}

func reads(ctx context.Context, rw *rwlock.RWLock) (*recipes.Hold, error) {
	return rw.Read().Acquire(ctx)
}

func upgrades(ctx context.Context, rw *rwlock.RWLock) (*recipes.Hold, error) {
	return rw.TryUpgrade(ctx)
}

var steps = []step{
	{"downgrade", (*rwlock.RWLock).Write, reads, fault.Match{Op: fault.OpMulti}},
	{"upgrade, first list", (*rwlock.RWLock).Read, upgrades, fault.Match{Op: fault.OpGetChildren2}},
	{"upgrade, node", (*rwlock.RWLock).Read, upgrades, fault.Match{Op: fault.OpMulti}},
	{"upgrade, second list", (*rwlock.RWLock).Read, upgrades, fault.Match{Op: fault.OpGetChildren2, Skip: 1}},
}

// failure is what happens to the request.
type failure struct {
	name   string
	action fault.Action
	fatal  bool // it lasts until the session has ended, and the client cannot connect again before
}

// strikes makes a fatal fault last: after rule has hit, the client cannot connect until held has
// ended.
func (f failure) strikes(t *testing.T, srv *zktest.Server, rule *fault.Rule, held *recipes.Hold) {
	if !f.fatal {
		return
	}
	go func() {
		if rule.Wait(t.Context()) == nil {
			srv.Client("target").Refuse(true)
			<-held.Done()
			srv.Client("target").Refuse(false)
		}
	}()
}

var faults = []failure{
	{"request lost", fault.DropBefore(), false},
	{"reply lost", fault.DropAfter(), false},
	{"reply torn", fault.Truncate(3), false},
	{"connection reset", fault.Reset(), false},
	{"late", fault.Delay(time.Second), false},
	{"later than the timeout of a connection", fault.Delay(3 * testzk.SessionTimeout), false},
	{"too late", fault.Delay(3 * testzk.SessionTimeout), true},
}

// Faults at each request of a downgrade or an upgrade. The second hold is made if the session lasts
// and the caller does not cancel. No other nodes are left, and no waiter gets the lock beside these
// holds.
func TestFaultsAtEachRequestOfADowngradeOrAnUpgrade(t *testing.T) {
	for _, s := range steps {
		for _, f := range faults {
			for name, leaves := range map[string]bool{"": false, ", caller leaves": true} {
				t.Run(s.name+"/"+f.name+name, func(t *testing.T) {
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						strike(t, srv, s, f, leaves)
					})
				})
			}
		}
	}
}

func strike(t *testing.T, srv *zktest.Server, s step, f failure, leaves bool) {
	in := on(srv)
	c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
	rw, theirs := newLock(t, c, in.path), in.lock(t)
	held := acquire(t, s.held(rw))
	waiters := crowd(t, theirs, "wr")
	ctx, cancel := context.WithCancel(held.Context(testzk.Context(t)))
	defer cancel()
	s.match.Client = "target"
	rule := srv.On(s.match, f.action)
	f.strikes(t, srv, rule, held)
	if leaves {
		go func() {
			_ = rule.Wait(ctx)
			cancel()
		}()
	}
	beside, err := s.beside(ctx, rw)
	require.Equal(t, 1, rule.Hits())
	var holds []*recipes.Hold
	switch {
	case leaves:
		require.ErrorIs(t, err, context.Canceled)
	case f.fatal:
		require.ErrorIs(t, err, framework.ErrSessionLost)
	default:
		require.NoError(t, err)
		require.Equal(t, held.Token(), beside.Token())
		holds = append(holds, beside)
	}
	if f.fatal {
		<-held.Done()
		require.ErrorIs(t, held.Release(), framework.ErrSessionLost)
	} else {
		holds = append(holds, held)
	}
	testzk.Eventually(t, func() bool { return slices.Equal(nodes(holds...), mine(t, srv)) },
		"other nodes than those of holds")
	for _, h := range holds {
		waitAll(t, in, waiters)
		require.NoError(t, h.Err())
		release(t, h)
	}
	serve(t, in, waiters)
	time.Sleep(3 * testzk.SessionTimeout) // late requests have arrived
	empty(t, rw)
}

// mine returns the sorted nodes of the target's sessions.
func mine(t *testing.T, srv *zktest.Server) (nodes []string) {
	t.Helper()
	names, err := srv.Children("/lock")
	require.NoError(t, err)
	for _, name := range names {
		stat, err := srv.Stat("/lock/" + name)
		require.NoError(t, err)
		if s, ok := srv.Session(stat.EphemeralOwner); ok && s.Client == "target" {
			nodes = append(nodes, "/lock/"+name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

func nodes(holds ...*recipes.Hold) (paths []string) {
	for _, h := range holds {
		paths = append(paths, h.Path())
	}
	slices.SortFunc(paths, strings.Compare)
	return paths
}

// heldUpgrade begins an upgrade of client target, and returns when the server holds back its create.
func heldUpgrade(
	t *testing.T, srv *zktest.Server, rw *rwlock.RWLock, reading *recipes.Hold,
) (create *fault.Rule, result <-chan error) {
	create = srv.On(fault.Match{Client: "target", Op: fault.OpMulti}, fault.Hold())
	done := make(chan error, 1)
	go func() {
		_, err := rw.TryUpgrade(reading.Context(testzk.Context(t)))
		done <- err
	}()
	require.NoError(t, create.Wait(testzk.Context(t)))
	return create, done
}

// An upgrade that fails deletes its node, even if a fault meets the delete.
func TestFaultsAtTheEndOfAFailedUpgrade(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				in := on(srv)
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
				rw, theirs := newLock(t, c, in.path), in.lock(t)
				reading := acquire(t, rw.Read())
				late, result := heldUpgrade(t, srv, rw, reading)
				other := acquire(t, theirs.Read()) // after the first list and before the create
				rule := srv.On(fault.Match{Client: "target", Op: fault.OpDelete}, f.action)
				f.strikes(t, srv, rule, reading)
				late.Release()
				require.ErrorIs(t, <-result, rwlock.ErrUpgrade)
				require.Equal(t, 1, rule.Hits())
				require.NoError(t, other.Err())
				queued(t, rw.Write(), 0)
				release(t, enter(t, theirs.Read()).Won(t), other)
				if f.fatal {
					require.ErrorIs(t, reading.Release(), framework.ErrSessionLost)
				} else {
					release(t, reading)
				}
				empty(t, rw)
			})
		})
	}
}

// The list behind the create is what shows a reader that came in between.
func TestUpgradeFailsIfTheQueueCannotBeListedAfterTheCreate(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
		rw, theirs := newLock(t, c, in.path), in.lock(t)
		reading := acquire(t, rw.Read())
		late, result := heldUpgrade(t, srv, rw, reading)
		other := acquire(t, theirs.Read()) // after the first list and before the create
		refused := srv.On(fault.Match{Client: "target", Op: fault.OpGetChildren2}, fault.Fail(zktest.NoAuth))
		late.Release()
		require.ErrorIs(t, <-result, zk.ErrNoAuth)
		require.Equal(t, 1, refused.Hits())
		require.NoError(t, other.Err())
		queued(t, rw.Write(), 0)
		release(t, reading, other)
		empty(t, rw)
	})
}
