package tree

import (
	"fmt"
	"strings"
)

// The children of a quota's node.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// account keeps the list of quotas and what they have counted. Nothing is ever refused for a quota, as on a server that does not
// enforce them.
func (t *Tree) account(effects []Effect) {
	counted := map[string]bool{}
	for _, e := range effects {
		path, name := quotaOf(e.Path)
		switch {
		case name == "":
			continue
		case name == limitsName && e.Kind == Created:
			t.quotas[path] = struct{}{}
		case name == limitsName && e.Kind == Deleted:
			delete(t.quotas, path)
		}
		counted[path] = true
	}
	if len(t.quotas) == 0 {
		return
	}
	for _, e := range effects {
		for path := e.Path; path != ""; path = Parent(path) {
			if _, ok := t.quotas[path]; ok {
				counted[path] = true
				break // only the nearest counts
			}
		}
	}
	for path := range counted {
		t.count(path)
	}
}

// quotaOf is the path that a quota's node is about, and which of the two it is.
func quotaOf(path string) (about, name string) {
	path, below := strings.CutPrefix(path, quotaPath)
	if !below {
		return "", ""
	}
	for _, name := range []string{limitsName, statsName} {
		if about, ok := strings.CutSuffix(path, name); ok && about != "" {
			return about, name
		}
	}
	return "", ""
}

// count writes what a quota has counted. It is no change that anybody hears of.
func (t *Tree) count(path string) {
	stats := t.node(quotaPath + path + statsName)
	if stats == nil {
		return
	}
	var nodes, bytes int
	for other, n := range t.nodes {
		if other == path || strings.HasPrefix(other, path+"/") {
			nodes++
			bytes += len(n.data)
		}
	}
	stats.data = fmt.Appendf(nil, "count=%d,bytes=%d", nodes, bytes)
}
