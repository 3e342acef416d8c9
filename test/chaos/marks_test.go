package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
)

// marks are nodes that one connection creates and deletes, one after the other, in the directories of
// locks. Persistent watches tell of them.
type marks struct {
	events  []viewEvent        // in the order of their transactions
	unknown map[viewEvent]bool // which may have happened, at any time
	count   int
}

func newMarks() *marks { return &marks{unknown: map[viewEvent]bool{}} }

// make creates a mark in a directory and deletes it. It reports false if that may have failed.
func (m *marks) make(conn *zk.Conn, dir string) bool {
	m.count++
	node := fmt.Sprintf("%s/mark-%06d", dir, m.count)
	created, deleted := viewEvent{zk.EventNodeCreated, node}, viewEvent{zk.EventNodeDeleted, node}
	_, err := conn.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false // the servers have deleted the directory, or have not got it yet
	case err != nil:
		m.unknown[created], m.unknown[deleted] = true, true
		return false
	}
	m.events = append(m.events, created)
	if err := conn.Delete(node, -1); err != nil {
		m.unknown[deleted] = true
		return false
	}
	m.events = append(m.events, deleted)
	return true
}

// makeAll makes marks in all directories, two in each. It reports false if one may have failed.
func (m *marks) makeAll(conn *zk.Conn, dirs []string) bool {
	for _, dir := range slices.Concat(dirs, dirs) {
		if !m.make(conn, dir) {
			return false
		}
	}
	return true
}

// clean deletes the marks that are left in a directory.
func (m *marks) clean(conn *zk.Conn, dir string) {
	names, _, _ := conn.Children(dir)
	for _, name := range names {
		if isMark(dir + "/" + name) {
			_ = conn.Delete(dir+"/"+name, -1) // what is left is found by the caller
		}
	}
}

// viewHistory is what one persistent watch has told.
type viewHistory struct {
	path   string
	mode   framework.WatchMode
	places map[viewEvent]int // of the events of marks, in their order
	known  int               // the number of those events that have a place
	next   int               // the place of the next event; negative: any may be next
	lists  int               // how often the list of the children has changed since the last gap or count
}

func newViewHistory(path string, mode framework.WatchMode) *viewHistory {
	return &viewHistory{path: path, mode: mode, places: map[viewEvent]int{}, next: -1}
}

// learn gives each event of a mark below the path its place.
func (v *viewHistory) learn(m *marks) {
	for _, e := range m.events[v.known:] {
		if strings.HasPrefix(e.Path, v.path+"/") {
			v.places[e] = len(v.places)
		}
	}
	v.known = len(m.events)
}

// add checks that no event is missing before e, unless a gap was told in between. m has all marks that
// were made before e.
func (v *viewHistory) add(m *marks, e viewEvent) error {
	switch {
	case e.Type == zk.EventNotWatching:
		v.next, v.lists = -1, 0
		return nil
	case e.Type == zk.EventNodeChildrenChanged:
		v.lists++
		return errorUnless(v.mode == framework.WatchNode, "%s: %v of a watch of a tree", v.path, e.Type)
	case m.unknown[e]:
		return nil
	}
	v.learn(m)
	place, there := v.places[e]
	if !there {
		return fmt.Errorf("%s: %v of %s, which is no event of a mark", v.path, e.Type, e.Path)
	}
	before := v.next
	v.next = place + 1
	return errorUnless(before < 0 || before == place,
		"%s: %v of %s is event %d of marks, want event %d", v.path, e.Type, e.Path, place, before)
}

// listsOf is how often makeAll changes the list of the children of a directory.
const listsOf = 4

// isComplete reports whether the last event was told. The watch of a node tells no events of marks, but
// changes of the list of its children.
func (v *viewHistory) isComplete(m *marks) bool {
	v.learn(m)
	if v.mode == framework.WatchNode {
		return v.lists >= listsOf
	}
	return v.next == len(v.places)
}

func TestHistoryOfAPersistentWatchFindsMissedEvents(t *testing.T) {
	m := newMarks()
	event := func(kind zk.EventType, n int) viewEvent { return viewEvent{kind, fmt.Sprintf("/d/mark-%d", n)} }
	for n := range 3 {
		m.events = append(m.events, event(zk.EventNodeCreated, n), viewEvent{zk.EventNodeCreated, "/e/mark-1"},
			event(zk.EventNodeDeleted, n))
	}
	late := event(zk.EventNodeCreated, 7)
	m.unknown[late] = true
	gap := viewEvent{Type: zk.EventNotWatching}
	all := []viewEvent{
		event(zk.EventNodeCreated, 0), event(zk.EventNodeDeleted, 0), event(zk.EventNodeCreated, 1),
		event(zk.EventNodeDeleted, 1), event(zk.EventNodeCreated, 2), event(zk.EventNodeDeleted, 2),
	}
	for name, example := range map[string]struct {
		events   []viewEvent
		want     string // empty: nothing is wrong
		complete bool
	}{
		"all":                 {all, "", true},
		"later":               {all[3:], "", true},
		"late":                {append([]viewEvent{late}, all...), "", true},
		"not the last":        {all[:5], "", false},
		"none":                {nil, "", false},
		"missed":              {[]viewEvent{all[1], all[3]}, "want event 2", false},
		"twice":               {[]viewEvent{all[1], all[1]}, "want event 2", false},
		"back":                {[]viewEvent{all[1], all[0]}, "want event 2", false},
		"missed and told":     {[]viewEvent{all[1], gap, all[4], all[5]}, "", true},
		"nothing after a gap": {append(all[:6:6], gap), "", false},
		"unknown":             {[]viewEvent{event(zk.EventNodeCreated, 9)}, "no event of a mark", false},
		"list":                {[]viewEvent{{Type: zk.EventNodeChildrenChanged}}, "of a tree", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newViewHistory("/d", framework.WatchTree)
			var err error
			for _, e := range example.events {
				err = errors.Join(err, v.add(m, e))
			}
			if example.want == "" {
				require.NoError(t, err)
				require.Equal(t, example.complete, v.isComplete(m))
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	v := newViewHistory("/d", framework.WatchNode)
	list := viewEvent{Type: zk.EventNodeChildrenChanged}
	for _, e := range []viewEvent{list, gap, list, list, list, list} {
		require.False(t, v.isComplete(m))
		require.NoError(t, v.add(m, e))
	}
	require.True(t, v.isComplete(m))
}
