package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
)

// caches has the caches of an actor of docent, by path.
type caches map[string]*cache.Cache

func (cs caches) act(c *framework.Client, verb, path string) (answer string, err error) {
	switch verb {
	case "cache":
		cs[path], err = cache.New(c, path)
		return "started", err
	case "cached":
		words := []string{"cached"}
		for node, n := range cs[path].All() {
			words = append(words, fmt.Sprintf("%s=%s", strings.TrimPrefix(node, path), n.Data))
		}
		return strings.Join(words, " "), nil
	}
	cs[path].Close()
	return "ended", nil
}

// testCaches has the caches of docent and of Curator on the nodes that members of both and the
// observer change.
func testCaches(t *testing.T, f *fleet) {
	path := newPath(t)
	ours, theirs := f.peers["docent"].actor(t), f.peers["java"].actor(t)
	both := func(nodes ...string) {
		t.Helper()
		for _, a := range []*actor{ours, theirs} {
			a.caches(path, nodes...)
		}
	}
	ours.do("started", "cache", path)
	theirs.do("started", "cache", path)
	both()
	ours.do("joined", "join", path, "one", "1")
	both("=", "/one=1")
	theirs.do("joined", "join", path, "two", "2")
	both("=", "/one=1", "/two=2")
	theirs.do("set", "payload", path, "2b")
	both("=", "/one=1", "/two=2b")

	for _, node := range []string{"/deep", "/deep/er"} {
		_, err := f.observer.Create(path+node, []byte("a"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	both("=", "/deep=a", "/deep/er=a", "/one=1", "/two=2b")
	require.NoError(t, f.observer.Delete(path+"/deep/er", -1))
	ours.do("left", "leave", path)
	both("=", "/deep=a", "/two=2b")
	theirs.do("left", "leave", path)
	require.NoError(t, f.observer.Delete(path+"/deep", -1))
	both("=")
	ours.do("ended", "uncache", path)
	theirs.do("ended", "uncache", path)
}

// caches waits until the cache of an actor has the nodes.
func (a *actor) caches(path string, nodes ...string) {
	a.t.Helper()
	want := strings.Join(append([]string{"cached"}, nodes...), " ")
	var last string
	for end := time.Now().Add(patience); last != want; time.Sleep(10 * time.Millisecond) {
		require.True(a.t, time.Now().Before(end), "%s: want %q, got %q", a.name, want, last)
		a.tell("cached", path)
		last = a.answer()
	}
}
