package discovery_test

import (
	"context"
	"fmt"
	"strings"
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
		_, err := r.View(name)
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
	for name, opt := range map[string]persistent.Option{
		"WithPersistence": persistent.WithPersistence(),
		"WithContainer":   persistent.WithContainer(),
		"WithTTL":         persistent.WithTTL(time.Hour),
		"WithSequence":    persistent.WithSequence(),
		"WithProtection":  persistent.WithProtection(),
	} {
		for _, kind := range []discovery.Type{discovery.Dynamic, discovery.DynamicSequential, discovery.Static} {
			i := orders("a")
			i.Type = kind
			_, err = r.Register(i, persistent.WithOccupiedTimeout(0), opt)
			require.ErrorContains(t, err, name, kind)
		}
	}
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
		require.Error(t, self.SetInstance(i), what)
	}
	require.Equal(t, was, self.Instance())
	i := was
	i.Port, i.Registered = 9090, time.Time{}
	require.NoError(t, self.SetInstance(i))
	require.Equal(t, was.Registered, self.Instance().Registered)
	require.NoError(t, self.Close())
	require.ErrorIs(t, self.SetInstance(i), discovery.ErrClosed)
	<-self.Done()
	require.Empty(t, self.Path())
}

func TestOptionsOfProvidersAreChecked(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	v := watch(t, newRegistry(t, c, base))
	for what, opt := range map[string]discovery.Option{
		"nil":       nil,
		"strategy":  discovery.WithStrategy(nil),
		"sticky":    discovery.WithStrategy(discovery.Sticky(nil)),
		"filter":    discovery.WithFilter(nil),
		"threshold": discovery.WithFailures(-1, time.Second),
		"period":    discovery.WithFailures(1, 0),
	} {
		_, err := discovery.NewProvider(v, opt)
		require.Error(t, err, what)
	}
	_, err := discovery.NewProvider(v, discovery.WithFailures(0, 0))
	require.NoError(t, err, "failures are not counted")
	_, err = discovery.NewProvider(nil)
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

func TestInvalidNamesAreShownAsTheCallerWroteThem(t *testing.T) {
	r := newRegistry(t, testzk.Client(t, "127.0.0.1:1"), "/services")
	for _, name := range []string{"", "a/b", "/", ".", "..", "a\x00"} {
		want := fmt.Sprintf("name %q: want the name of a node", name)
		_, err := r.View(name)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		_, err = r.Instances(t.Context(), name)
		require.ErrorContains(t, err, want)
		_, err = r.Instance(t.Context(), "orders", name)
		require.ErrorContains(t, err, fmt.Sprintf("ID %q: want the name of a node", name))
		require.NotContains(t, err.Error(), "/names")
	}
	for range 20 {
		_, err := r.Register(discovery.Instance{Name: "a/b", ID: "c/d", Port: -1, SSLPort: -1})
		require.ErrorContains(t, err, `name "a/b"`, "the first one in the order of the fields")
		_, err = r.Register(discovery.Instance{Name: "a", ID: "c", Port: -1, SSLPort: -2})
		require.ErrorContains(t, err, "port -1")
	}
}

func TestTooLargePayloadIsRefusedAndTheInstanceStays(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	r := newRegistry(t, c, base)
	much := orders("a")
	much.Payload = []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
	_, err := r.Register(much)
	require.ErrorIs(t, err, framework.ErrTooLarge)
	self := register(t, r, orders("a"))
	was := self.Instance()
	require.ErrorIs(t, self.SetInstance(much), framework.ErrTooLarge)
	require.Equal(t, was, self.Instance())
	require.NoError(t, self.WaitReady(testzk.Context(t)))
	small := orders("a")
	small.Payload = []byte("1")
	require.NoError(t, self.SetInstance(small))
	require.NoError(t, self.WaitReady(testzk.Context(t)))
	require.NoError(t, self.Err())
}

func TestZeroValuesAreNamed(t *testing.T) {
	zero := &discovery.Registration{}
	for what, err := range map[string]error{
		"Close": zero.Close(), "Err": zero.Err(), "WaitReady": zero.WaitReady(t.Context()),
		"SetInstance": zero.SetInstance(orders("a")),
	} {
		require.ErrorIs(t, err, framework.ErrZeroValue, what)
		require.ErrorContains(t, err, "discovery.Registration", what)
	}
	<-zero.Done()
	require.Empty(t, zero.Path())
	require.Zero(t, zero.Instance())
}

func TestRegistrationSharesNoPayload(t *testing.T) {
	r := newRegistry(t, testzk.Client(t, "127.0.0.1:1"), "/services")
	i := orders("a")
	i.Payload, i.URI = []byte("11"), &discovery.URISpec{Parts: []discovery.URIPart{{Value: "a"}}}
	self, err := r.Register(i)
	require.NoError(t, err)
	defer func() { _ = self.Close() }()
	change := func(i discovery.Instance) { i.Payload[0], i.URI.Parts[0].Value = '9', "z" }
	same := func(want string) {
		require.Equal(t, want, string(self.Instance().Payload))
		require.Equal(t, "a", self.Instance().URI.String())
	}
	change(i)
	same("11")
	change(self.Instance())
	same("11")
	i.Payload, i.URI = []byte("22"), &discovery.URISpec{Parts: []discovery.URIPart{{Value: "a"}}}
	require.NoError(t, self.SetInstance(i))
	change(i)
	same("22")
}
