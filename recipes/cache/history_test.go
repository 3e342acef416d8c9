package cache_test

import (
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
)

// history compares the events of a cache with the transactions of the servers.
type history struct {
	t testing.TB

	mu      sync.Mutex
	commits map[string][]commit // by path, in order
	seen    map[string]seen     // by path: what the events have shown
	last    map[string]int64    // by path: the zxid of the newest version that an event has shown
	unsure  map[string]bool     // paths of nodes that have been unreadable; they may have been replaced
	events  []cache.Event
}

type commit struct {
	zxid   int64
	exists bool
	data   string
}

type seen struct {
	version
	data bool // the cache holds data
	err  bool // the cache holds an error; the version is the last that was readable
	stat bool // the cache holds the Stat
}

// newHistory follows the transactions of srv; nil: it checks the events against each other only.
func newHistory(t testing.TB, srv *zktest.Server) *history {
	h := &history{t: t, commits: map[string][]commit{}, seen: map[string]seen{}, last: map[string]int64{},
		unsure: map[string]bool{}}
	if srv == nil {
		h.commits = nil
		return h
	}
	srv.OnCommit(func(zxid int64, changes []zktest.Change) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range changes {
			h.commits[c.Path] = append(h.commits[c.Path], commit{zxid, c.Kind != zktest.NodeDeleted, string(c.Data)})
		}
	})
	return h
}

// add checks an event.
func (h *history) add(e cache.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	at := e.Path()
	old, there := h.seen[at]
	switch e.Kind {
	case cache.Added:
		assert.False(h.t, there, "%v: it was there", e)
		_, parent := h.seen[path.Dir(at)]
		assert.True(h.t, parent || at == "/a", "%v: its parent is not there", e)
	case cache.Changed, cache.Removed:
		assert.True(h.t, there, "%v: it was not there", e)
		assert.Equal(h.t, old.err, e.Old.Err != nil, "%v: of another node than before", e)
		unreadable := old.err && e.Old.Stat.Czxid == 0
		assert.True(h.t, unreadable || old.czxid == e.Old.Stat.Czxid, "%v: of another node than before", e)
		assert.True(h.t, !old.data || old.mzxid == e.Old.Stat.Mzxid, "%v: of another version than before", e)
	}
	switch e.Kind {
	case cache.Added, cache.Changed:
		h.checkNew(e, old, there)
	case cache.Removed:
		for below := range h.seen {
			assert.False(h.t, path.Dir(below) == at && below != at, "%v: a child is still there", e)
		}
		h.checkDeletion(e, old)
		delete(h.seen, at)
		if h.unsure[at] {
			h.forget(at)
		}
	}
}

// checkNew checks that the version of an event existed, and that it is newer than those before.
func (h *history) checkNew(e cache.Event, old seen, there bool) {
	at, n := e.Path(), e.New
	v := version{n.Stat.Czxid, n.Stat.Mzxid, string(n.Data)}
	changed := old.err != (n.Err != nil) || there && old.stat != (n.Stat.Czxid != 0)
	if n.Stat.Czxid == 0 {
		assert.True(h.t, n.Err != nil, "%v: no node", e)
		h.seen[at], h.unsure[at] = seen{version: old.version, err: true}, true
		return
	}
	newer := v.mzxid > h.last[at] || changed && v.mzxid == h.last[at]
	assert.True(h.t, newer, "%v: older than what was told before", e)
	assert.True(h.t, old.czxid == 0 || old.czxid == v.czxid, "%v: another node without a deletion", e)
	if h.commits != nil {
		existed := false
		for _, c := range h.commits[at] {
			existed = existed || c.exists && c.zxid == v.mzxid && (n.Data == nil || c.data == v.data)
		}
		assert.True(h.t, existed, "%v: version %d %q never existed", e, v.mzxid, v.data)
	}
	h.last[at] = v.mzxid
	h.seen[at] = seen{v, n.Data != nil, n.Err != nil, true}
}

// checkDeletion checks that the node was deleted.
func (h *history) checkDeletion(e cache.Event, old seen) {
	if h.commits == nil || h.isUnsure(e.Path()) {
		return
	}
	deleted := false
	for _, c := range h.commits[e.Path()] {
		deleted = deleted || !c.exists && c.zxid > old.mzxid
	}
	assert.True(h.t, deleted, "%v: it was not deleted", e)
}

// isUnsure reports whether a node, or one above it, has been unreadable.
func (h *history) isUnsure(at string) bool {
	for ; at != "/"; at = path.Dir(at) {
		if h.unsure[at] {
			return true
		}
	}
	return false
}

// forget lets nodes at and below a path be told again.
func (h *history) forget(at string) {
	delete(h.unsure, at)
	for below := range h.last {
		if below == at || strings.HasPrefix(below, at+"/") {
			delete(h.last, below)
		}
	}
}

// content returns what the events show in the end.
func (h *history) content() map[string]version {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]version{}
	for at, s := range h.seen {
		all[at] = named(s.version, s.data)
	}
	return all
}

// content returns what the cache holds.
func content(c *cache.Cache) map[string]version {
	all := map[string]version{}
	for at, n := range c.All() {
		all[at] = named(version{n.Stat.Czxid, n.Stat.Mzxid, string(n.Data)}, n.Data != nil)
	}
	return all
}

// named returns v without what a cache without data does not know.
func named(v version, data bool) version {
	if !data {
		return version{czxid: v.czxid}
	}
	return v
}
