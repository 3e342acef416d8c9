package leader_test

import (
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

const uuid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`

// Curator: LeaderLatch and LeaderSelector. A candidate without an id has an empty text in the
// former, and an address in the latter.
func TestNodesHaveCuratorsLayout(t *testing.T) {
	c, plain := own(t), testzk.Observer(t)
	for name, kind := range map[string]struct {
		stand func(path string, opts ...leader.Option)
		node  string
		id    func(t *testing.T, data []byte)
	}{
		"latch": {
			func(path string, opts ...leader.Option) { await(t, started(t, own(t), path, opts...)) },
			`^` + uuid + `latch-0000000000$`,
			func(t *testing.T, data []byte) { require.Empty(t, data) },
		},
		"selector": {
			func(path string, opts ...leader.Option) { stand(t, own(t), path, opts...).leads(t) },
			`^` + uuid + `lock-0000000000$`,
			func(t *testing.T, data []byte) { require.NotNil(t, net.ParseIP(string(data)), "%q", data) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for id, opts := range map[string][]leader.Option{"": nil, "zwölf": {leader.WithID("zwölf")}} {
				dir := testzk.Path(t) + "/" + name
				kind.stand(dir, opts...)
				node := queued(t, c, dir, 1)[0].Node
				require.Regexp(t, kind.node, path.Base(node))
				data, stat, err := plain.Get(node)
				require.NoError(t, err)
				require.NotZero(t, stat.EphemeralOwner)
				if id != "" {
					require.Equal(t, id, string(data))
				} else {
					kind.id(t, data)
				}
			}
		})
	}
}

// An Election is a mutex with the leader as its holder. A holder of the mutex keeps it from
// leading.
func TestElectionIsAMutex(t *testing.T) {
	dir, c := testzk.Path(t), own(t)
	mu, err := mutex.New(c, dir)
	require.NoError(t, err)
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	e := stand(t, own(t), dir)
	queued(t, c, dir, 2)
	require.Empty(t, e.terms)
	require.NoError(t, hold.Release())
	term := e.leads(t)
	require.Greater(t, term.Token(), hold.Token())
	require.NoError(t, recipes.Revoke(testzk.Context(t), c, recipes.Participant{Node: term.Path()}))
	testzk.Closes(t, term.Revoked(), "the leader is not revoked")
	require.NoError(t, term.Err(), "a revocation is no loss")
}

func TestIdentityHasHostProcessAndPID(t *testing.T) {
	dir, c := testzk.Path(t), own(t)
	await(t, started(t, own(t), dir, leader.WithIdentity()))
	all := queued(t, c, dir, 1)
	require.NotNil(t, all[0].Identity)
	require.NotZero(t, all[0].Identity.PID)
}

// Missing parents and the chroot are created as containers, which servers delete when there are no
// candidates. Other children are ignored.
func TestParentsAreCreatedAndOtherChildrenIgnored(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := testzk.Connected(t, srv.MemAddr()+"/chroot",
			framework.WithDialer(srv.Client("c").DialContext), framework.WithNamespace("space"))
		l := started(t, c, "/deep/leader", leader.WithLockDelay(time.Second))
		term := await(t, l)
		require.Equal(t, "/deep/leader", path.Dir(term.Path()))
		require.NoError(t, srv.Create("/chroot/space/deep/leader/-x", nil))
		require.NoError(t, srv.Create("/chroot/space/deep/leader/other-0000000000", nil))
		require.NoError(t, term.Resign())
		await(t, l)
		require.Len(t, queued(t, c, "/deep/leader", 1), 1)
		require.NoError(t, l.Close())
		require.True(t, srv.Exists("/chroot/space/deep/leader-term"))
	})
}

// An uncontended term begins with a create and a list, sent together, and ends with one request. A
// lock delay adds two requests to the former and one to the latter.
func TestTermMakesTheRequestsOfALock(t *testing.T) {
	for want, opts := range map[string][]leader.Option{
		"delete, create, getChildren2":                        nil,
		"multi, delete, create, getChildren2, getData, multi": {leader.WithLockDelay(time.Second)},
	} {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			l := started(t, member(t, srv, "c"), "/leader", opts...)
			term := await(t, l)
			seen := len(srv.Trace().Entries)
			require.NoError(t, term.Resign())
			await(t, l)
			var asked []string
			for _, e := range srv.Trace().Entries[seen:] {
				if e.What != "event" {
					asked = append(asked, e.What)
				}
			}
			require.Equal(t, want, strings.Join(asked, ", "))
			require.NoError(t, l.Close())
		})
	}
}
