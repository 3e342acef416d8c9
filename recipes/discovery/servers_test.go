package discovery_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/persistent"
)

// These tests run on real servers too.

func TestInstancesAreRegisteredAndFound(t *testing.T) {
	base := testzk.Path(t)
	here := newRegistry(t, testzk.Connected(t, testzk.Connect()), base)
	there := newRegistry(t, testzk.Connected(t, testzk.Connect()), base)
	v, r := watch(t, there), &recorder{}
	v.Listen(r.add)
	none, err := there.Instances(testzk.Context(t), "orders")
	require.NoError(t, err)
	require.Empty(t, none)

	i := orders("a")
	i.Payload = json.RawMessage(`1`)
	a := register(t, here, i)
	require.Equal(t, base+"/orders/a", a.Path())
	shows(t, v, "a")
	b := register(t, here, orders(""))
	shows(t, v, ids([]*discovery.Instance{{ID: "a"}, {ID: b.Instance().ID}})...)

	for _, name := range []string{"z", "a"} {
		other := orders("a")
		other.Name = name
		register(t, here, other)
	}
	names, err := here.Names(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "orders", "z"}, names)
	found, err := here.Instances(testzk.Context(t), "orders")
	require.NoError(t, err)
	require.Len(t, found, 2)
	one, err := here.Instance(testzk.Context(t), "orders", "a")
	require.NoError(t, err)
	require.EqualExportedValues(t, a.Instance(), *one)
	require.EqualExportedValues(t, *one, *v.Instances()[len(v.Instances())-1])
	require.Equal(t, "10.0.0.3:8080", one.HostPort())
	require.Equal(t, "orders/a at 10.0.0.3:8080", one.String())
	require.NoError(t, b.Close())
	shows(t, v, "a")
	require.Equal(t, "orders", v.Name())

	changed := *one
	changed.Payload, changed.Disabled = json.RawMessage(`2`), true
	require.NoError(t, a.SetInstance(changed))
	require.NoError(t, a.WaitReady(testzk.Context(t)))
	testzk.Eventually(t, func() bool { return v.Instances()[0].Disabled }, "the view has no update")
	require.NoError(t, a.Close())
	shows(t, v)
	_, err = here.Instance(testzk.Context(t), "orders", "a")
	require.ErrorIs(t, err, zk.ErrNoNode)
	testzk.Eventually(t, func() bool { return len(r.events()) == 6 }, "not all events")
	id := b.Instance().ID
	require.Equal(t, []string{
		"ready", "added new a1", "added new " + id, "removed old " + id, "changed old a1 new a2", "removed old a2",
	}, r.events())
}

func TestTypesHaveCuratorsNodes(t *testing.T) {
	c, observer, base := testzk.Connected(t, testzk.Connect()), testzk.Observer(t), testzk.Path(t)
	r := newRegistry(t, c, base)
	for _, row := range []struct {
		kind      discovery.Type
		path      string
		ephemeral bool
	}{
		{"", base + "/orders/a", true},
		{discovery.Dynamic, base + "/orders/a", true},
		{discovery.Static, base + "/orders/a", false},
		{discovery.Permanent, base + "/orders/a", false},
		{discovery.DynamicSequential, base + `/orders/_c_[-0-9a-f]{36}-a\d{10}`, true},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			i := orders("a")
			i.Type = row.kind
			self := register(t, r, i)
			require.Regexp(t, "^"+row.path+"$", self.Path())
			exists, stat, err := observer.Exists(self.Path())
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, row.ephemeral, stat.EphemeralOwner != 0)
			require.NoError(t, self.Close())
		})
	}
}

func TestIDThatIsInUseIsAnError(t *testing.T) {
	base := testzk.Path(t)
	first := newRegistry(t, testzk.Connected(t, testzk.Connect()), base)
	second := newRegistry(t, testzk.Connected(t, testzk.Connect()), base)
	a := register(t, first, orders("a"))
	_, err := first.Register(orders("a"))
	require.ErrorIs(t, err, discovery.ErrIDInUse)

	other, err := second.Register(orders("a"), persistent.WithOccupiedTimeout(0))
	require.NoError(t, err)
	require.ErrorIs(t, other.WaitReady(testzk.Context(t)), discovery.ErrIDInUse)
	require.ErrorIs(t, other.Err(), discovery.ErrIDInUse)
	require.NoError(t, other.Close())
	require.Equal(t, base+"/orders/a", a.Path())

	waiting, err := second.Register(orders("a"))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, waiting.WaitReady(testzk.Context(t)), "the ID is free")
	require.NoError(t, waiting.Close())
}

func TestNodesThatAreNotInstancesAreLeftOut(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	r := newRegistry(t, c, base)
	a := register(t, r, orders("a"))
	hidden := base + "/orders/hidden"
	_, err := c.Create(testzk.Context(t), hidden, nil, framework.ACL(zk.DigestACL(zk.PermAll, "no", "body")...))
	require.NoError(t, err)
	v := watch(t, r)
	bad := base + "/orders/bad"
	_, err = c.Create(testzk.Context(t), bad, []byte("10.0.0.3"))
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return len(v.Unreadable()) == 2 }, "the view does not show them")
	require.ErrorIs(t, v.Unreadable()[bad], discovery.ErrUnreadable)
	require.ErrorIs(t, v.Unreadable()[hidden], zk.ErrNoAuth)
	require.Equal(t, []string{"a"}, ids(v.Instances()))
	_, err = r.Instance(testzk.Context(t), "orders", "bad")
	require.ErrorIs(t, err, discovery.ErrUnreadable)
	_, err = r.Instances(testzk.Context(t), "orders")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, c.Delete(testzk.Context(t), hidden, -1))
	all, err := r.Instances(testzk.Context(t), "orders")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, ids(all))

	text, err := a.Instance().MarshalJSON()
	require.NoError(t, err)
	_, err = c.Set(testzk.Context(t), bad, text, -1)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return len(v.Instances()) == 2 }, "the node is an instance now")
	require.NotContains(t, v.Unreadable(), bad)
	_, err = c.Set(testzk.Context(t), bad, nil, -1)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return len(v.Instances()) == 1 }, "the node is no instance any more")
	require.Contains(t, v.Unreadable(), bad)
	require.NoError(t, c.Delete(testzk.Context(t), bad, -1))
	testzk.Eventually(t, func() bool { _, there := v.Unreadable()[bad]; return !there }, "the node is deleted")
}

func TestServiceThatCannotBeListedIsUnreadable(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	folder := base + "/orders"
	_, err := c.Create(testzk.Context(t), folder, nil, framework.Parents(),
		framework.ACL(zk.DigestACL(zk.PermAll, "no", "body")...))
	require.NoError(t, err)
	r := newRegistry(t, c, base)
	v := watch(t, r)
	require.NoError(t, v.WaitReady(testzk.Context(t)))
	require.ErrorIs(t, v.Unreadable()[folder], zk.ErrNoAuth)
	require.Empty(t, v.Instances())
	require.NoError(t, c.Delete(testzk.Context(t), folder, -1))
	register(t, r, orders("a"))
	testzk.Eventually(t, func() bool { return len(v.Instances()) == 1 }, "another node can be listed")
	require.Empty(t, v.Unreadable())
}

func TestStaticInstanceOutlivesItsClient(t *testing.T) {
	base := testzk.Path(t)
	first := testzk.Client(t, testzk.Connect())
	i := orders("a")
	i.Type = discovery.Static
	register(t, newRegistry(t, first, base), i)
	require.NoError(t, first.Close())

	r := newRegistry(t, testzk.Connected(t, testzk.Connect()), base)
	all, err := r.Instances(testzk.Context(t), "orders")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, ids(all))
	next := *all[0]
	next.Port = 9090
	self := register(t, r, next, persistent.WithTakeover(func([]byte, zk.Stat) bool { return true }))
	found, err := r.Instance(testzk.Context(t), "orders", "a")
	require.NoError(t, err)
	require.Equal(t, 9090, found.Port)
	require.NoError(t, self.Close())
}

func TestRegistryOfANamespace(t *testing.T) {
	c, name := testzk.Connected(t, testzk.Connect()), testzk.Path(t)[1:]
	inside, err := discovery.New(c.Namespace(strings.Split(name, "/")[0]), "/")
	require.NoError(t, err)
	self := register(t, inside, orders("a"))
	require.Equal(t, "/orders/a", self.Path())
	v := watch(t, inside)
	shows(t, v, "a")
	outside := newRegistry(t, c, "/"+strings.Split(name, "/")[0])
	register(t, outside, orders("b"))
	shows(t, v, "a", "b")
	names, err := inside.Names(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, names)
}
