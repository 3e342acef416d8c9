package watch

import (
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Manager holds all watches of one server.
type Manager[W comparable] struct {
	old            bool
	data, children *table[W]
}

// NewManager returns an empty Manager. An old one follows 3.8, in which each watcher has one mode
// per path.
func NewManager[W comparable](old bool) *Manager[W] {
	return &Manager[W]{old: old, data: newTable[W](old), children: newTable[W](old)}
}

// Data adds a one-shot watch of a node's data and existence.
func (m *Manager[W]) Data(path string, w W) { m.data.add(path, w, Once) }

// Children adds a one-shot watch of a node's children.
func (m *Manager[W]) Children(path string, w W) { m.children.add(path, w, Once) }

// Persistent watches a node until the watch is removed.
func (m *Manager[W]) Persistent(path string, w W) {
	m.data.add(path, w, Persistent)
	m.children.add(path, w, Persistent)
}

// Recursive watches a node and all nodes below it until the watch is removed.
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

// Created returns the watchers to notify that path was created, and those to notify that its
// parent's children changed.
func (m *Manager[W]) Created(path, parent string) (node, above map[W]bool) {
	node = m.data.fire(proto.EventCreated, path, nil)
	above = m.children.fire(proto.EventChildrenChanged, parent, nil)
	return node, above
}

// Changed returns the watchers to notify that the data of path changed.
func (m *Manager[W]) Changed(path string) map[W]bool {
	return m.data.fire(proto.EventDataChanged, path, nil)
}

// Deleted returns the watchers to notify that path was deleted, and those to notify that its
// parent's children changed.
func (m *Manager[W]) Deleted(path, parent string) (node, above map[W]bool) {
	node = m.data.fire(proto.EventDeleted, path, nil)
	node = m.children.fire(proto.EventDeleted, path, node) // one event to each watcher
	above = m.children.fire(proto.EventChildrenChanged, parent, nil)
	return node, above
}

// parts returns the modes in the two tables for a watcher type of the protocol.
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

// Remove removes watches, and reports whether there were any.
func (m *Manager[W]) Remove(path string, w W, kind int32) bool {
	data, children, _ := m.parts(kind)
	removed := data != 0 && m.data.remove(path, w, data)
	return children != 0 && m.children.remove(path, w, children) || removed
}

// Has reports whether w has such a watch. In 3.8 it reports whether any watcher has one.
func (m *Manager[W]) Has(path string, w W, kind int32) bool {
	data, children, _ := m.parts(kind)
	if m.old {
		return data != 0 && len(m.data.byPath[path]) > 0 || children != 0 && len(m.children.byPath[path]) > 0
	}
	return m.data.byPath[path][w]&data != 0 || m.children.byPath[path][w]&children != 0
}

// Stumbles reports whether 3.8 fails on path. If it finds no watch at path, it searches the paths
// above for a recursive watch, and fails when it reaches a part without a slash.
func (m *Manager[W]) Stumbles(path string, w W, kind int32) bool {
	if m.data.recursive > 0 || m.children.recursive > 0 {
		return !strings.HasPrefix(path, "/") && !m.Has(path, w, kind) || !strings.Contains(path, "/")
	}
	return !strings.Contains(path, "/")
}

// Count returns the number of watches of both kinds.
func (m *Manager[W]) Count() int {
	count := 0
	for _, t := range []*table[W]{m.data, m.children} {
		for _, watchers := range t.byPath {
			count += len(watchers)
		}
	}
	return count
}

// DataPaths returns the paths with watched data, with their watchers. The four-letter words show
// these.
func (m *Manager[W]) DataPaths() map[string][]W {
	paths := make(map[string][]W, len(m.data.byPath))
	for path, watchers := range m.data.byPath {
		for w := range watchers {
			paths[path] = append(paths[path], w)
		}
	}
	return paths
}
