package discovery_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/persistent"
)

func TestArgumentsAreChecked(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	_, err := discovery.New(nil, base)
	require.Error(t, err)
	for _, path := range []string{"", "services", "/services/"} {
		_, err = discovery.New(c, path)
		require.ErrorIs(t, err, framework.ErrInvalidPath, path)
	}
	r := newRegistry(t, c, base)
	for _, name := range []string{"", "a/b", "/", ".", ".."} {
		_, err := r.Watch(name)
		require.ErrorIs(t, err, framework.ErrInvalidPath, name)
		_, err = r.Instances(t.Context(), name)
		require.ErrorIs(t, err, framework.ErrInvalidPath, name)
		_, err = r.Instance(t.Context(), "orders", name)
		require.ErrorIs(t, err, framework.ErrInvalidPath, name)
	}
	for what, change := range map[string]func(*discovery.Instance){
		"name":     func(i *discovery.Instance) { i.Name = "" },
		"slash":    func(i *discovery.Instance) { i.Name = "a/b" },
		"ID":       func(i *discovery.Instance) { i.ID = "a/b" },
		"port":     func(i *discovery.Instance) { i.Port = -1 },
		"SSL port": func(i *discovery.Instance) { i.SSLPort = 65536 },
		"payload":  func(i *discovery.Instance) { i.Payload = []byte("text") },
		"type":     func(i *discovery.Instance) { i.Type = "dynamic" },
	} {
		i := orders("a")
		change(&i)
		_, err := r.Register(i)
		require.Error(t, err, what)
	}
	static := orders("a")
	static.Type = discovery.Static
	_, err = r.Register(static, persistent.WithContainer())
	require.Error(t, err)
	names, err := r.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestUpdateKeepsTheIdentity(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	old := orders("a")
	old.Registered = at(1234)
	self := register(t, newRegistry(t, c, base), old)
	was := self.Instance()
	for what, change := range map[string]func(*discovery.Instance){
		"name":    func(i *discovery.Instance) { i.Name = "other" },
		"ID":      func(i *discovery.Instance) { i.ID = "b" },
		"type":    func(i *discovery.Instance) { i.Type = discovery.Static },
		"payload": func(i *discovery.Instance) { i.Payload = []byte("text") },
	} {
		i := was
		change(&i)
		require.Error(t, self.Update(i), what)
	}
	require.Equal(t, was, self.Instance())
	i := was
	i.Port, i.Registered = 9090, time.Time{}
	require.NoError(t, self.Update(i))
	require.Equal(t, was.Registered, self.Instance().Registered)
	require.NoError(t, self.Close())
	require.ErrorIs(t, self.Update(i), persistent.ErrNodeClosed)
	<-self.Done()
	require.Empty(t, self.Path())
}

func TestOptionsOfProvidersAreChecked(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	v := watch(t, newRegistry(t, c, base))
	for what, opt := range map[string]discovery.Option{
		"nil":       nil,
		"strategy":  discovery.WithStrategy(nil),
		"filter":    discovery.WithFilter(nil),
		"threshold": discovery.WithFailures(-1, time.Second),
		"period":    discovery.WithFailures(1, 0),
	} {
		_, err := discovery.NewProvider(v, opt)
		require.Error(t, err, what)
	}
	_, err := discovery.NewProvider(nil)
	require.EqualError(t, err, "new provider: nil View")
	_, err = discovery.NewProvider(&discovery.View{})
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.PanicsWithValue(t, "discovery: Listen: nil function", func() { v.Listen(nil) })
}

func TestContextsAreChecked(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	r := newRegistry(t, c, base)
	register(t, r, orders("a"))
	v := watch(t, r)
	p := newProvider(t, v)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		ctx  context.Context
		want error
	}{{nil, framework.ErrNilContext}, {ended, context.Canceled}} {
		_, err := r.Names(row.ctx)
		require.ErrorIs(t, err, row.want)
		_, err = r.Instance(row.ctx, "orders", "a")
		require.ErrorIs(t, err, row.want)
		_, err = r.Instances(row.ctx, "orders")
		require.ErrorIs(t, err, row.want)
		require.ErrorIs(t, v.WaitReady(row.ctx), row.want)
		_, err = p.Pick(row.ctx)
		require.ErrorIs(t, err, row.want)
	}
}
