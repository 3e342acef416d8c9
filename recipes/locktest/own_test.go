package locktest_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestMain(m *testing.M) { testzk.Main(m) }

// kind is a lock of docent.
type kind struct {
	make func(t testing.TB, c *framework.Client) (recipes.Locker, error)
	// queue is the directory of the waiters, and holders is how many of its nodes hold.
	queue   string
	holders int
	node    string // the directory of the holder's node
	tokens  bool
}

var kinds = map[string]kind{
	"mutex": {
		make:  func(_ testing.TB, c *framework.Client) (recipes.Locker, error) { return mutex.New(c, "/lock") },
		queue: "/lock", holders: 1, node: "/lock", tokens: true,
	},
	"mutex that is passed on": {
		make: func(_ testing.TB, c *framework.Client) (recipes.Locker, error) {
			return mutex.New(c, "/lock", mutex.WithLocalHandoff(mutex.Handoff{Streak: 3, Span: time.Second}))
		},
		queue: "/lock", holders: 1, node: "/lock", tokens: true,
	},
	"mutex of a semaphore": {
		make: func(_ testing.TB, c *framework.Client) (recipes.Locker, error) {
			return semaphore.NewMutex(c, "/lock")
		},
		queue: "/lock/locks", node: "/lock/leases", tokens: true,
	},
	"write side": {
		make: func(t testing.TB, c *framework.Client) (recipes.Locker, error) {
			rw, err := rwlock.New(c, "/lock")
			require.NoError(t, err)
			return rw.Write(), nil
		},
		queue: "/lock", holders: 1, node: "/lock", tokens: true,
	},
	"two at once": {
		make: func(_ testing.TB, c *framework.Client) (recipes.Locker, error) {
			return multilock.New(c, []string{"/lock", "/other"})
		},
		queue: "/lock", holders: 1, node: "/other",
	},
	"two one after another": {
		make: func(t testing.TB, c *framework.Client) (recipes.Locker, error) {
			first, err := mutex.New(c, "/lock")
			require.NoError(t, err)
			second, err := mutex.New(c, "/other")
			require.NoError(t, err)
			return multilock.Combine(first, second)
		},
		queue: "/lock", holders: 1, node: "/other",
	},
	"lock of a key": {
		make: func(t testing.TB, c *framework.Client) (recipes.Locker, error) {
			s, err := striped.New(c, "/locks", 4)
			require.NoError(t, err)
			return s.For("key"), nil
		},
		tokens: true,
	},
}

const timeout = 6 * time.Second

// In virtual time, each test with a server of its own.
func TestLocks(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			var srv *zktest.Server // of the test that runs
			s := locktest.Service{
				Lease: timeout, Tokens: k.tokens,
				Client: func(t testing.TB, name string) locktest.Client { return k.client(t, srv, name) },
				Around: func(t *testing.T, run func(t *testing.T)) {
					sim.Once(t, 1, func(t *testing.T, one *zktest.Server, _ *rand.Rand) {
						srv = one
						run(t)
					})
				},
			}
			if k.queue != "" {
				s.Waiters = func(testing.TB) int {
					nodes, _ := srv.Children(k.queue) // nothing if there is no such node
					return len(nodes) - k.holders
				}
			}
			locktest.Run(t, s)
		})
	}
}

func (k kind) client(t testing.TB, srv *zktest.Server, name string) locktest.Client {
	c := testlock.Named(t, srv, name, framework.WithSessionTimeout(timeout))
	lock, err := k.make(t, c)
	require.NoError(t, err)
	client := locktest.Client{
		Lock: lock,
		Cut: func(cut bool) {
			if cut {
				srv.Client(name).Cut()
			} else {
				srv.Client(name).Heal()
			}
		},
		Close: func() { require.NoError(t, c.Close()) },
	}
	if k.node != "" {
		client.Delete = func() {
			nodes, err := srv.Children(k.node)
			require.NoError(t, err)
			require.NotEmpty(t, nodes)
			slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(number(a), number(b)) })
			require.NoError(t, srv.Delete(path.Join(k.node, nodes[0]))) // those behind it wait
		}
	}
	return client
}

// number returns the end of a node's name, which orders nodes of one kind.
func number(node string) string { return node[strings.LastIndex(node, "-")+1:] }
