package framework_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// sent returns the numbers of creates, transactions and other requests about nodes.
func sent(p *proxy.Proxy, before map[fault.Op]int) (creates, multis, others int) {
	for op, n := range p.Requests() {
		switch n -= before[op]; op {
		case fault.OpCreate, fault.OpCreateContainer:
			creates += n
		case fault.OpMulti:
			multis += n
		case fault.OpExists, fault.OpGetData, fault.OpGetChildren2:
			others += n
		}
	}
	return creates, multis, others
}

func TestEachMissingParentCostsOneRequest(t *testing.T) {
	c, p := proxied(t)
	ctx, under := testzk.Context(t), parent(t)
	for n, dir := range []string{"", "/a", "/b/b", "/c/c/c"} {
		before := p.Requests()
		made, err := c.Create(ctx, under+dir+"/lock-", nil, append(kinds["lock node"], framework.Parents())...)
		require.NoError(t, err)
		require.Equal(t, under+dir, path.Dir(made))
		creates, multis, others := sent(p, before)
		require.Equal(t, []int{1, n, 0}, []int{creates, multis, others}, "%d missing", n)

		before = p.Requests()
		_, err = c.Multi(ctx, framework.CreateOp(under+"/in-multi"+dir+"/n", nil, framework.Parents()))
		require.NoError(t, err)
		_, multis, others = sent(p, before)
		require.Equal(t, []int{max(2, n+1), 0}, []int{multis, others}, "%d missing", n)
	}
}

func TestTransactionCreatesTheParentsOfItsNodes(t *testing.T) {
	ctx, under, o := testzk.Context(t), parent(t), testzk.Observer(t)
	for name, on := range map[string]*framework.Client{
		"/n1": testzk.Connected(t, testzk.Connect()),
		"/n2": testzk.Connected(t, testzk.Connect(), framework.WithNamespace(under[1:]+"/n2")),
	} {
		at := under + name
		if name == "/n2" {
			at = ""
		}
		_, err := on.Create(ctx, at+"/there", nil, framework.Parents())
		require.NoError(t, err)
		results, err := on.Multi(ctx,
			framework.CheckOp(at+"/there", 0),
			framework.CreateOp(at+"/a/b/n", []byte("1"), framework.Parents()),
			framework.CreateOp(at+"/there/n", []byte("2"), framework.Parents()),
			framework.CreateOp(at+"/a/c/n-", []byte("3"), append(kinds["lock node"], framework.Parents())...),
			framework.CreateOp(at+"/a/c/n-", []byte("4"), framework.Sequential(), framework.Parents()),
			framework.SetOp(at+"/there", []byte("5"), 0),
		)
		require.NoError(t, err)
		require.Len(t, results, 6)
		require.Equal(t, at+"/a/b/n", results[1].Path)
		require.Equal(t, at+"/there/n", results[2].Path)
		require.Regexp(t, "^"+at+"/a/c/_c_.*-n-0000000000$", results[3].Path)
		require.Equal(t, at+"/a/c/n-0000000001", results[4].Path)
		require.EqualValues(t, 1, results[5].Stat.Version)
		for i, r := range results[1:5] {
			data, stat, err := on.Get(ctx, r.Path)
			require.NoError(t, err)
			require.Equal(t, string("1234"[i]), string(data))
			require.Equal(t, results[1].Czxid, stat.Czxid)
		}
		_, stat, _ := observe(t, o, under+name+"/a")
		require.Equal(t, results[1].Czxid, stat.Czxid, "in the same transaction")
	}
}

func TestFailedTransactionCreatesNoParents(t *testing.T) {
	ctx, under, o := testzk.Context(t), parent(t), testzk.Observer(t)
	c := testzk.Connected(t, testzk.Connect())
	create := framework.CreateOp(under+"/a/b/n", nil, framework.Parents())
	results, err := c.Multi(ctx, create, framework.CheckOp(under+"/none", -1))
	failed(t, err, framework.NotApplied, zk.ErrNoNode)
	require.ErrorIs(t, results[0].Err, framework.ErrRolledBack)
	require.ErrorIs(t, results[1].Err, zk.ErrNoNode)
	require.Empty(t, children(t, o, under))

	_, err = c.SetACL(ctx, under, zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
	require.NoError(t, err)
	testzk.Everywhere(t)
	results, err = c.Multi(ctx, framework.CheckOp(under, -1), create)
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	require.ErrorContains(t, err, create.String())
	require.ErrorIs(t, results[0].Err, framework.ErrRolledBack)
	require.ErrorIs(t, results[1].Err, zk.ErrNoAuth, "that of the parent")
	_, err = c.Create(ctx, under+"/a/n", nil, framework.Parents())
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
}

func TestParentsThatAppearOrDisappearMeanwhile(t *testing.T) {
	ctx, o := testzk.Context(t), testzk.Observer(t)
	world := zk.WorldACL(zk.PermAll)
	for what, change := range map[string]func(under string) error{
		"parent created": func(under string) error {
			_, err := o.Create(under+"/x/y", nil, 0, world)
			return err
		},
		"parent created, and no permission above it": func(under string) error {
			_, err := o.Create(under+"/x/y", nil, 0, world)
			if err == nil {
				_, err = o.SetACL(under+"/x", zk.WorldACL(zk.PermRead), -1)
			}
			return err
		},
		"grandparent deleted": func(under string) error { return o.Delete(under+"/x", -1) },
	} {
		c, p := proxied(t)
		under := parent(t)
		require.NoError(t, c.CreateContainers(ctx, under+"/x"))
		second := p.On(fault.Match{Op: fault.OpMulti, Path: under}, fault.Hold())
		result := make(chan error, 1)
		go func() {
			_, err := c.Create(ctx, under+"/x/y/n", nil, framework.Parents())
			result <- err
		}()
		require.NoError(t, second.Wait(ctx))
		require.NoError(t, change(under), what)
		second.Release()
		require.NoError(t, <-result, what)
		require.Equal(t, []string{"n"}, children(t, o, under+"/x/y"), what)
	}
}

// The ACL that a client gives to a new parent forbids it to create the next one.
func TestNewParentThatMustNotHaveChildrenIsNamed(t *testing.T) {
	under := parent(t)
	c := testzk.Connected(t, testzk.Connect(), framework.WithACL(func(path string) []zk.ACL {
		if path == under+"/closed" {
			return zk.WorldACL(zk.PermAdmin | zk.PermRead)
		}
		return zk.WorldACL(zk.PermAll)
	}))
	_, err := c.Create(testzk.Context(t), under+"/closed/x/n", nil, framework.Parents())
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	require.Empty(t, children(t, testzk.Observer(t), under))
}

// The node has the largest size, and the path of its parent does not fit into the same request.
func TestParentsOfALargeNodeAreCreatedBeforeIt(t *testing.T) {
	c, p := proxied(t)
	ctx, under := testzk.Context(t), parent(t)+"/"+strings.Repeat("p", 1000)
	path := under + "/node"
	size := 1 << 20
	for ; ; size-- { // the largest that is not refused before it is sent
		if _, err := c.Create(ctx, path, make([]byte, size)); errors.Is(err, zk.ErrNoNode) {
			break
		}
	}
	before := p.Requests()[fault.OpConnect]
	_, err := c.Create(ctx, path, make([]byte, size), framework.Parents())
	require.NoError(t, err)
	require.Equal(t, before, p.Requests()[fault.OpConnect], "a connection ended")
}

// createWhileTheParentChanges creates a node with Parents. So many times, another client creates the
// parent just before the transaction does, and deletes it just before the next transaction.
func createWhileTheParentChanges(t *testing.T, times int) error {
	t.Helper()
	c, p := proxied(t)
	x, o := parent(t)+"/x", testzk.Observer(t)
	hold := func() *fault.Rule { return p.On(fault.Match{Op: fault.OpMulti, Path: x}, fault.Hold()) }
	request := hold()
	result := make(chan error, 1)
	go func() {
		_, err := c.Multi(t.Context(), framework.CreateOp(x+"/n", nil, framework.Parents()))
		result <- err
	}()
	for i := range 2*times + 1 {
		require.NoError(t, request.Wait(testzk.Context(t)))
		held := request
		if i < 2*times {
			request = hold()
		}
		switch {
		case i%2 == 1: // with the parent
			_, err := o.Create(x, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		case i > 0:
			require.NoError(t, o.Delete(x, -1))
		}
		held.Release()
	}
	return <-result
}

// The servers may delete containers as often as they are created.
func TestParentsThatStayInTheEndAreNoError(t *testing.T) {
	require.NoError(t, createWhileTheParentChanges(t, 99))
}

func TestParentsThatNeverStayAreAnError(t *testing.T) {
	failed(t, createWhileTheParentChanges(t, 100), framework.NotApplied, zk.ErrNoNode)
}

func TestProtectedCreateWithParentsMakesOneNodeAfterALostRequestOrReply(t *testing.T) {
	t.Parallel()
	type create func(c *framework.Client, path string, opts ...framework.CreateOption) (made string, err error)
	alone := func(c *framework.Client, path string, opts ...framework.CreateOption) (string, error) {
		return c.Create(testzk.Context(t), path, []byte("data"), opts...)
	}
	inMulti := func(c *framework.Client, path string, opts ...framework.CreateOption) (string, error) {
		results, err := c.Multi(testzk.Context(t), framework.CreateOp(path, []byte("data"), opts...))
		if err != nil {
			return "", err
		}
		return results[0].Path, nil
	}
	o := testzk.Observer(t)
	for what, action := range faults {
		for _, by := range []struct {
			kind   string
			create create
			skip   int // transactions before the one that is lost
		}{
			{"lock node", alone, 0}, {"container", alone, 1}, {"lock node", inMulti, 1}, {"persistent", inMulti, 2},
		} {
			c, p := proxied(t)
			under := parent(t)
			rule := p.On(fault.Match{Op: fault.OpMulti, Path: under, Skip: by.skip}, action)
			made, err := by.create(c, under+"/x/y/n", append(kinds[by.kind], framework.Parents())...)
			require.NoError(t, err, "%s: %s", by.kind, what)
			require.Equal(t, 1, rule.Hits(), "%s: %s", by.kind, what)
			require.Equal(t, []string{path.Base(made)}, children(t, o, under+"/x/y"), "%s: %s", by.kind, what)
		}
	}
}

func TestLostAnswerToAnUnprotectedCreateWithParentsIsUnknown(t *testing.T) {
	c, p := proxied(t)
	under := parent(t)
	p.On(fault.Match{Op: fault.OpMulti, Path: under}, fault.DropAfter())
	_, err := c.Create(testzk.Context(t), under+"/x/n", nil, framework.Parents())
	failed(t, err, framework.Unknown)
}

// A transaction that creates more parents would be sent once more for each of them.
func TestManyMissingParentsAreCreatedOneByOne(t *testing.T) {
	c, p := proxied(t)
	ctx, under := testzk.Context(t), parent(t)
	var list []framework.Op
	for i := range 20 {
		list = append(list, framework.CreateOp(fmt.Sprintf("%s/%d/n", under, i), nil, framework.Parents()))
	}
	results, err := c.Multi(ctx, list...)
	require.NoError(t, err)
	for i, r := range results {
		require.Equal(t, fmt.Sprintf("%s/%d/n", under, i), r.Path)
	}
	require.Equal(t, 10, p.Requests()[fault.OpMulti])
	require.Equal(t, 20, p.Requests()[fault.OpCreateContainer])

	deep := under + strings.Repeat("/deep", 20)
	_, err = c.Create(ctx, deep+"/n", nil, framework.Parents())
	require.NoError(t, err)
	require.Equal(t, 10+9, p.Requests()[fault.OpMulti])
	require.Equal(t, 20+20, p.Requests()[fault.OpCreateContainer])
}

// There is no room for the parents in the request.
func TestLargeNodesGetTheirParentsBefore(t *testing.T) {
	c, p := proxied(t)
	ctx, under := testzk.Context(t), parent(t)
	data := make([]byte, 1<<20)
	for {
		_, err := c.Create(ctx, under+"/a/b/n", data, framework.Parents())
		if err == nil {
			break
		}
		require.ErrorIs(t, err, framework.ErrTooLarge)
		data = data[1:]
	}
	require.Equal(t, 2, p.Requests()[fault.OpCreateContainer])
	stored, _, err := c.Get(ctx, under+"/a/b/n")
	require.NoError(t, err)
	require.Len(t, stored, len(data))
}

func TestParentsOfContainersAndNodesWithATimeToLive(t *testing.T) {
	e := testzk.Own(t, time.Second)
	c := testzk.Connected(t, e.Connect())
	ctx := testzk.Context(t)
	for dir, opt := range map[string]framework.CreateOption{
		"/c": framework.Container(), "/t": framework.TTL(time.Hour), "/p": framework.Ephemeral(),
	} {
		r, err := c.CreateResult(ctx, dir+"/x/n", []byte("data"), opt, framework.Parents())
		require.NoError(t, err)
		stat, err := c.Exists(ctx, dir+"/x/n")
		require.NoError(t, err)
		require.Equal(t, framework.Result{Path: dir + "/x/n", Czxid: stat.Czxid}, r)
	}
	_, err := c.Create(ctx, "/c/x/n/child", nil)
	require.NoError(t, err)
	require.NoError(t, c.Delete(ctx, "/c/x/n/child", -1))
	testzk.Eventually(t, func() bool {
		_, err := c.Exists(ctx, "/c")
		return errors.Is(err, zk.ErrNoNode)
	}, "the container is left")
	_, err = c.Exists(ctx, "/t/x/n")
	require.NoError(t, err)
}
