// Package watch keeps watches and finds the watchers that a change concerns. It is not safe for
// concurrent use.
package watch

import (
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Mode is a set of ways in which a watcher watches a path.
type Mode uint8

// The modes.
const (
	Once Mode = 1 << iota
	Persistent
	Recursive
	any = Once | Persistent | Recursive
)

// table holds the watchers of each path for one kind of change.
type table[W comparable] struct {
	oneMode   bool // a new mode replaces the old one
	byPath    map[string]map[W]Mode
	byWatcher map[W]map[string]struct{}
	recursive int // number of recursive entries
}

func newTable[W comparable](oneMode bool) *table[W] {
	return &table[W]{
		oneMode: oneMode, byPath: map[string]map[W]Mode{}, byWatcher: map[W]map[string]struct{}{},
	}
}

func (t *table[W]) add(path string, w W, m Mode) {
	if t.byPath[path] == nil {
		t.byPath[path] = map[W]Mode{}
	}
	if t.byWatcher[w] == nil {
		t.byWatcher[w] = map[string]struct{}{}
	}
	if !t.oneMode {
		m |= t.byPath[path][w]
	}
	t.byWatcher[w][path] = struct{}{}
	t.set(path, w, m)
}

// set replaces the mode of an entry; 0 removes the entry.
func (t *table[W]) set(path string, w W, m Mode) {
	watchers := t.byPath[path]
	t.recursive += int(m&Recursive/Recursive) - int(watchers[w]&Recursive/Recursive)
	if m != 0 {
		watchers[w] = m
		return
	}
	delete(watchers, w)
	if len(watchers) == 0 {
		delete(t.byPath, path)
	}
	delete(t.byWatcher[w], path)
	if len(t.byWatcher[w]) == 0 {
		delete(t.byWatcher, w)
	}
}

// remove reports whether it removed a watch.
func (t *table[W]) remove(path string, w W, m Mode) bool {
	have := t.byPath[path][w]
	if t.oneMode {
		m = any
	}
	if have&m == 0 {
		return false
	}
	t.set(path, w, have&^m)
	return true
}

func (t *table[W]) forget(w W) {
	for path := range t.byWatcher[w] {
		t.set(path, w, 0)
	}
}

// fire adds the watchers that an event at path concerns to told, and removes their one-shot
// watches. It returns nil for the empty set, which is the common case.
func (t *table[W]) fire(event int32, path string, told map[W]bool) map[W]bool {
	told = t.fireAt(path, told, func(m Mode) bool {
		return m&(Once|Persistent) != 0 || m&Recursive != 0 && event != proto.EventChildrenChanged
	})
	if t.recursive == 0 || event == proto.EventChildrenChanged {
		return told
	}
	for up, more := above(path); more; up, more = above(up) {
		for w, m := range t.byPath[up] {
			if m&Recursive != 0 {
				told = with(told, w)
			}
		}
	}
	return told
}

func (t *table[W]) fireAt(path string, told map[W]bool, concerned func(Mode) bool) map[W]bool {
	for w, m := range t.byPath[path] {
		if concerned(m) {
			told = with(told, w)
		}
		if m&Once != 0 {
			t.set(path, w, m&^Once)
		}
	}
	return told
}

func with[W comparable](told map[W]bool, w W) map[W]bool {
	if told == nil {
		told = map[W]bool{}
	}
	told[w] = true
	return told
}

// above returns the path of the parent. It reports false for the root.
func above(path string) (string, bool) {
	if path == "/" || path == "" {
		return "", false
	}
	return path[:max(strings.LastIndexByte(path, '/'), 1)], true
}
