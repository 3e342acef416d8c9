package framework

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework/internal/conn"
)

func TestWatchesAreSetAgainInPortionsByKind(t *testing.T) {
	h := newWatchTable()
	watch := func(path string, kind watchKind, seen int64) {
		key := watchKey{path, kind}
		w, ask, _ := h.join(key)
		require.True(t, ask)
		if seen != 0 {
			h.answered(key, w, true, true, seen)
		}
	}
	every := func(watchKey) bool { return true }
	require.Empty(t, h.batches(every))
	watch("/data", watchData, 5)
	watch("/there", watchExists, 5)
	watch("/absent", watchExists, absent)
	watch("/children", watchChildren, 5)
	watch("/unknown", watchExists, 0) // without a reply yet
	require.Equal(t, []conn.Watches{{
		Data:     []string{"/data", "/there", "/unknown"},
		Exists:   []string{"/absent"},
		Children: []string{"/children"},
	}}, h.batches(every))

	const watches, size = 20, 30 << 10
	for i := range watches {
		watch(fmt.Sprintf("/%d%s", i, strings.Repeat("x", size)), watchData, 5)
	}
	all := h.batches(every)
	require.Len(t, all, watches/4)
	set := 0
	for _, some := range all {
		bytes := 0
		for _, path := range some.Data {
			bytes += len(path)
		}
		require.LessOrEqual(t, bytes, batchBytes)
		set += len(some.Data)
	}
	require.Equal(t, watches+3, set)
}

// A read may begin while the watches are set again. On the former connection a persistent watch covered it.
func TestWatchesOfReadsThatBeginMeanwhileAreSetAgain(t *testing.T) {
	h := newWatchTable()
	r := rewatch{set: map[watchKey]bool{}, wanted: func(path string) WatchMode {
		return map[string]WatchMode{"/tree": WatchTree}[path]
	}}
	h.join(watchKey{"/plain", watchData})
	h.join(watchKey{"/tree", watchChildren})
	require.Equal(t, []conn.Watches{{Data: []string{"/plain"}}}, h.batches(r.first))
	for _, path := range []string{"/late", "/tree"} {
		h.join(watchKey{path, watchData})
		h.join(watchKey{path, watchChildren})
	}
	require.Equal(t, []conn.Watches{{
		Data: []string{"/late"}, Children: []string{"/tree", "/late"},
	}}, h.batches(r.last))
}

func TestAnEndedSessionIsNotTheSourceOfEvents(t *testing.T) {
	var ws watchers
	old, current := &session{done: make(chan struct{})}, &session{done: make(chan struct{})}
	ws.adopt(old)
	require.Same(t, old, ws.source)
	close(old.done)
	ws.adopt(current)
	ws.adopt(old) // its connection was made again before it had ended
	require.Same(t, current, ws.source)
}
