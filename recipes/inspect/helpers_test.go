package inspect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time on a server of its own.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) }, opts...)
}

// client returns a client of srv with a name.
func client(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	dialer := framework.WithDialer(srv.Client(name).DialContext)
	return testzk.Connected(t, srv.MemAddr(), append([]framework.Option{dialer}, opts...)...)
}

func create(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) {
	t.Helper()
	_, err := c.Create(t.Context(), path, []byte(data), append(opts, framework.Parents())...)
	require.NoError(t, err, path)
}

// The beginnings of the names of lock nodes.
const (
	guid      = "_c_8026b758-0c64-4418-a4a7-a40067d845c1-"
	otherGUID = "_c_8026b758-0c64-4418-a4a7-a40067d845c2-"
	plainGUID = "_c_8026b7580c644418a4a7a40067d845c1-"
	hex       = "8026b7580c644418a4a7a40067d845c1"
	otherHex  = "8026b7580c644418a4a7a40067d845c2"
	uuid      = "8026b758-0c64-4418-a4a7-a40067d845c1"
	otherUUID = "8026b758-0c64-4418-a4a7-a40067d845c2"
)

// walk returns all objects at and below root.
func walk(t testing.TB, c *framework.Client, root string, opts ...inspect.Option) (all []*inspect.Object) {
	t.Helper()
	for o, err := range inspect.Walk(testzk.Context(t), c, root, opts...) {
		require.NoError(t, err)
		all = append(all, o)
	}
	return all
}

func show(t testing.TB, c *framework.Client, path string, opts ...inspect.Option) *inspect.Object {
	t.Helper()
	o, err := inspect.Show(testzk.Context(t), c, path, opts...)
	require.NoError(t, err)
	return o
}

// lines returns a line for each of objects.
func lines(objects []*inspect.Object, root string) (all []string) {
	for _, o := range objects {
		all = append(all, strings.TrimPrefix(o.Path, root)+" "+brief(o))
	}
	return all
}

// brief returns kind, state, numbers of nodes and what else is remarkable.
func brief(o *inspect.Object) string {
	words := []string{string(o.Kind)}
	if !o.Sure {
		words[0] += "?"
	}
	if o.State != "" {
		words = append(words, string(o.State))
	}
	for _, l := range o.Layouts {
		words = append(words, string(l))
	}
	if o.Holders+o.Waiters > 0 {
		words = append(words, fmt.Sprintf("%d+%d", o.Holders, o.Waiters))
	}
	if o.Limit != nil {
		words = append(words, fmt.Sprintf("of %d", *o.Limit))
	}
	if o.Value != nil {
		words = append(words, fmt.Sprintf("= %d", *o.Value))
	}
	for _, w := range o.Warnings {
		words = append(words, "!"+string(w))
	}
	if o.Torn {
		words = append(words, "torn")
	}
	return strings.Join(words, " ")
}

// roles returns role, number of nodes ahead and "holds" of each node of an object.
func roles(o *inspect.Object) (all []string) {
	for _, n := range o.Nodes {
		text := fmt.Sprintf("%s %d", n.Role, n.Ahead)
		if n.Holds {
			text += " holds"
		}
		all = append(all, text)
	}
	return all
}

func newMutex(t testing.TB, c *framework.Client, path string, opts ...mutex.Option) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, opts...)
	require.NoError(t, err)
	return mu
}

// queued waits until an object has so many nodes.
func queued(t testing.TB, c *framework.Client, path string, nodes int) *inspect.Object {
	t.Helper()
	var o *inspect.Object
	testzk.Eventually(t, func() bool {
		var err error
		o, err = inspect.Show(testzk.Context(t), c, path)
		return err == nil && len(o.Nodes) == nodes
	}, "%s does not get %d nodes", path, nodes)
	return o
}

// session returns the id of the session of a client.
func session(t testing.TB, c *framework.Client) inspect.ID {
	t.Helper()
	s, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	return inspect.ID(s.ID())
}

func acl(perms int32) []zk.ACL { return zk.WorldACL(perms) }
