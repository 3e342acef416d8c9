package interop

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/persistent"
)

// Programs in Java and in Go find each other's instances of a service. kazoo has no services.
func testServices(t *testing.T, f *fleet) {
	for name, compatible := range map[string]bool{"with enabled": false, "without enabled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("from Java", func(t *testing.T) { newServices(t, f, compatible).fromJava(t, compatible) })
			t.Run("from Go", func(t *testing.T) { newServices(t, f, compatible).fromGo(t) })
		})
	}
}

// services is a registry in Java and one in Go, for the same path.
type services struct {
	java     *actor
	registry *discovery.Registry
	view     *discovery.View
}

func newServices(t *testing.T, f *fleet, compatible bool) services {
	s := services{java: f.peers["java"].actor(t)}
	base := newPath(t)
	s.java.do("made", "services", base, compatible)
	var err error
	s.registry, err = discovery.New(testzk.Connected(t, f.ensemble.Connect()), base)
	require.NoError(t, err)
	s.view, err = s.registry.View("orders")
	require.NoError(t, err)
	t.Cleanup(s.view.Close)
	require.NoError(t, s.view.WaitReady(testzk.Context(t)))
	return s
}

// shows waits until the view in Go has these instances.
func (s services) shows(t *testing.T, want ...string) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		var got []string
		for _, i := range s.view.Instances() {
			uri, err := i.BuildURI(nil)
			require.NoError(t, err)
			got = append(got, fmt.Sprintf("%s,%s,%s,%s,%v", i.ID, i.Type, uri, i.Payload, !i.Disabled))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}, "not %q", want)
}

// javaShows waits until a question to Java has an answer.
func (s services) javaShows(t *testing.T, question, want string) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		s.java.tell("service", question)
		return s.java.answer() == want
	}, "%s: not %q", question, want)
}

func (s services) fromJava(t *testing.T, compatible bool) {
	s.java.do("registered", "service", "register", "a", "DYNAMIC", 80, "text", true)
	s.shows(t, `a,DYNAMIC,http://10.0.0.3:80/,"text",true`)
	s.java.do("updated", "service", "update", "a", "DYNAMIC", 81, "key:value", false)
	const object = `{"@class":"java.util.HashMap","key":"value"}`
	s.shows(t, fmt.Sprintf(`a,DYNAMIC,http://10.0.0.3:81/,%s,%v`, object, compatible))
	provider, err := discovery.NewProvider(s.view)
	require.NoError(t, err)
	require.Equal(t, compatible, len(provider.Instances()) == 1)
	names, err := s.registry.Names(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, names)

	copied := *s.view.Instances()[0]
	require.EqualValues(t, 1234, copied.Registered.UnixMilli())
	taken, err := s.registry.Register(copied, persistent.WithOccupiedTimeout(0))
	require.NoError(t, err)
	require.ErrorIs(t, taken.WaitReady(testzk.Context(t)), discovery.ErrIDInUse)
	copied.ID, copied.Disabled = "copy", false
	self, err := s.registry.Register(copied)
	require.NoError(t, err)
	require.NoError(t, self.WaitReady(testzk.Context(t)))
	s.javaShows(t, "find", fmt.Sprintf("a,DYNAMIC,http://10.0.0.3:81/,{key=value},%v "+
		"copy,DYNAMIC,http://10.0.0.3:81/,{key=value},true", compatible))
	require.NoError(t, self.Close())

	s.java.do("unregistered", "service", "unregister", "a", "DYNAMIC", 0, "text", true)
	s.shows(t)
	for _, kind := range []string{"STATIC", "DYNAMIC_SEQUENTIAL"} {
		s.java.do("registered", "service", "register", kind, kind, 80, "text", true)
	}
	s.shows(t, `DYNAMIC_SEQUENTIAL,DYNAMIC_SEQUENTIAL,http://10.0.0.3:80/,"text",true`,
		`STATIC,STATIC,http://10.0.0.3:80/,"text",true`)
}

func (s services) fromGo(t *testing.T) {
	uri, err := discovery.ParseURISpec("{scheme}://{address}:{port}/")
	require.NoError(t, err)
	for _, kind := range []discovery.Type{discovery.Static, discovery.Permanent, discovery.DynamicSequential} {
		self, err := s.registry.Register(discovery.Instance{
			Name: "orders", ID: "a", Address: "10.0.0.3", Port: 80, Type: kind, URI: uri,
		})
		require.NoError(t, err)
		s.javaShows(t, "provided", fmt.Sprintf("a,%s,http://10.0.0.3:80/,null,true", kind))
		s.javaShows(t, "find", fmt.Sprintf("a,%s,http://10.0.0.3:80/,null,true", kind))
		require.NoError(t, self.Close())
		s.javaShows(t, "provided", "")
	}

	self, err := s.registry.Register(discovery.Instance{
		Name: "orders", ID: "a", Address: "10.0.0.3", Port: 80, SSLPort: 443, URI: uri,
		Payload: json.RawMessage(`"text"`),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = self.Close() })
	s.javaShows(t, "provided", "a,DYNAMIC,https://10.0.0.3:80/,text,true")
	s.java.do("orders", "service", "names")
	s.java.do("a", "service", "pick")
	i := self.Instance()
	i.Payload = json.RawMessage(`{"key":"value"}`)
	require.NoError(t, self.SetInstance(i))
	s.javaShows(t, "provided", "a,DYNAMIC,https://10.0.0.3:80/,{key=value},true")
	i.Disabled = true
	require.NoError(t, self.SetInstance(i))
	s.javaShows(t, "find", "a,DYNAMIC,https://10.0.0.3:80/,{key=value},false")
	s.javaShows(t, "provided", "")
	s.java.do("none", "service", "pick")
	i.Disabled = false
	require.NoError(t, self.SetInstance(i))
	s.javaShows(t, "pick", "a")
	require.NoError(t, self.Close())
	s.javaShows(t, "provided", "")
}
