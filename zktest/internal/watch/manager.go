package watch

import (
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Manager is all watches of one server.
type Manager[W comparable] struct {
	old            bool
	data, children *table[W]
}

// NewManager returns an empty Manager. An old one is that of 3.8, in which each watcher has one mode at a path.
func NewManager[W comparable](old bool) *Manager[W] {
	return &Manager[W]{old: old, data: newTable[W](old), children: newTable[W](old)}
}

// Data watches a node's data and existence, once.
func (m *Manager[W]) Data(path string, w W) { m.data.add(path, w, Once) }

// Children watches a node's children, once.
func (m *Manager[W]) Children(path string, w W) { m.children.add(path, w, Once) }

// Persistent watches a node until that is taken back.
func (m *Manager[W]) Persistent(path string, w W) {
	m.data.add(path, w, Persistent)
	m.children.add(path, w, Persistent)
}

// Recursive watches a node and all below until that is taken back.
func (m *Manager[W]) Recursive(path string, w W) {
	m.data.add(path, w, Recursive)
	if m.old {
		m.children.add(path, w, Recursive)
	}
}

// Forget removes all watches of w.
func (m *Manager[W]) Forget(w W) {
	m.data.forget(w)
	m.children.forget(w)
}

// Created says who is to be told that path was created, and who that its parent's children changed.
func (m *Manager[W]) Created(path, parent string) (node, above map[W]bool) {
	node = m.data.fire(proto.EventCreated, path, nil)
	above = m.children.fire(proto.EventChildrenChanged, parent, nil)
	return node, above
}

// Changed says who is to be told that the data of path changed.
func (m *Manager[W]) Changed(path string) map[W]bool {
	return m.data.fire(proto.EventDataChanged, path, nil)
}

// Deleted says who is to be told that path was deleted, and who that its parent's children changed.
func (m *Manager[W]) Deleted(path, parent string) (node, above map[W]bool) {
	node = m.data.fire(proto.EventDeleted, path, nil)
	node = m.children.fire(proto.EventDeleted, path, node) // one event to each
	above = m.children.fire(proto.EventChildrenChanged, parent, nil)
	return node, above
}

// parts are the tables and modes that a watcher type of the protocol stands for.
func (m *Manager[W]) parts(kind int32) (data, children Mode, ok bool) {
	switch kind {
	case proto.WatcherChildren:
		return 0, Once, true
	case proto.WatcherData:
		return Once, 0, true
	case proto.WatcherAny:
		return any, any, true
	case proto.WatcherPersistent:
		return Persistent, Persistent, !m.old
	case proto.WatcherRecursive:
		return Recursive, Recursive, !m.old
	}
	return 0, 0, false
}

// Known reports whether kind is a watcher type.
func (m *Manager[W]) Known(kind int32) bool {
	_, _, ok := m.parts(kind)
	return ok
}

// Remove takes watches back, and reports whether there were any.
func (m *Manager[W]) Remove(path string, w W, kind int32) bool {
	data, children, _ := m.parts(kind)
	removed := data != 0 && m.data.remove(path, w, data)
	return children != 0 && m.children.remove(path, w, children) || removed
}

// Has reports whether w has such a watch. With 3.8 anybody's watch counts.
func (m *Manager[W]) Has(path string, w W, kind int32) bool {
	data, children, _ := m.parts(kind)
	if m.old {
		return data != 0 && len(m.data.byPath[path]) > 0 || children != 0 && len(m.children.byPath[path]) > 0
	}
	return m.data.byPath[path][w]&data != 0 || m.children.byPath[path][w]&children != 0
}

// Stumbles reports whether 3.8, which goes up from path in search of a recursive watch if it finds none there, meets a part that has
// nothing above it.
func (m *Manager[W]) Stumbles(path string, w W, kind int32) bool {
	if m.data.recursive > 0 || m.children.recursive > 0 {
		return !strings.HasPrefix(path, "/") && !m.Has(path, w, kind) || !strings.Contains(path, "/")
	}
	return !strings.Contains(path, "/")
}

// Count is the number of watches of both kinds.
func (m *Manager[W]) Count() int {
	count := 0
	for _, t := range []*table[W]{m.data, m.children} {
		for _, watchers := range t.byPath {
			count += len(watchers)
		}
	}
	return count
}

// DataPaths are the paths whose data is watched, with those who do. It is what the four-letter words show.
func (m *Manager[W]) DataPaths() map[string][]W {
	paths := make(map[string][]W, len(m.data.byPath))
	for path, watchers := range m.data.byPath {
		for w := range watchers {
			paths[path] = append(paths[path], w)
		}
	}
	return paths
}
