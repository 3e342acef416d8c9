package tree

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The children of a quota's node.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// account updates the list of quotas and their counts.
func (t *Tree) account(effects []Effect) {
	counted := map[string]bool{}
	for _, e := range effects {
		path, name := quotaOf(e.Path)
		switch {
		case name == "":
			continue
		case name == limitsName && e.Kind == Created:
			t.quotas[path] = usage{}
		case name == limitsName && e.Kind == Deleted:
			delete(t.quotas, path)
		}
		counted[path] = true
	}
	if len(t.quotas) == 0 {
		return
	}
	for _, e := range effects {
		if path, ok := t.quotaFor(e.Path); ok {
			counted[path] = true
		}
	}
	for path := range counted {
		t.count(path)
	}
}

// quotaOf returns the path that a quota's node is about, and the node's name. Both are empty for
// other nodes.
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

// quotaFor returns the path of the nearest quota, the only one that applies.
func (t *Tree) quotaFor(path string) (string, bool) {
	for ; path != ""; path = Parent(path) {
		if _, ok := t.quotas[path]; ok {
			return path, true
		}
	}
	return "", false
}

var hardLimit = regexp.MustCompile(`(byte|count)HardLimit=(\d+)`)

// exceeds reports whether so many more nodes and bytes exceed a quota.
func (t *Tree) exceeds(path string, nodes, bytes int) bool {
	about, ok := t.quotaFor(path)
	limits := t.node(quotaPath + about + limitsName)
	if !t.rules.EnforceQuota || !ok || limits == nil {
		return false
	}
	used := t.quotas[about] // before the transaction, whatever its earlier parts did
	total := map[string]int{"count": used.nodes + nodes, "byte": used.bytes + bytes}
	for _, limit := range hardLimit.FindAllStringSubmatch(string(limits.data), -1) {
		most, err := strconv.Atoi(limit[2])
		if err == nil && total[limit[1]] > most {
			return true
		}
	}
	return false
}

// usage is the number of nodes at and below a path, and the size of their data.
type usage struct{ nodes, bytes int }

// count writes the counts of a quota. This triggers no watch.
func (t *Tree) count(path string) {
	var used usage
	for other, n := range t.nodes {
		if other == path || strings.HasPrefix(other, path+"/") {
			used.nodes++
			used.bytes += len(n.data)
		}
	}
	if _, ok := t.quotas[path]; ok {
		t.quotas[path] = used
	}
	if stats := t.node(quotaPath + path + statsName); stats != nil {
		stats.data = fmt.Appendf(nil, "count=%d,bytes=%d", used.nodes, used.bytes)
	}
}
