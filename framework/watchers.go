package framework

import (
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/znode"
)

// watchers holds the persistent watches of a client, whatever its session. Its mu is taken after
// that of a watchTable.
type watchers struct {
	mu     sync.Mutex
	source *session // the latest; events of other sessions are not reported
	byPath map[string]*pathWatchers
}

// pathWatchers holds the persistent watches of one path, in the order of their creation.
type pathWatchers struct {
	nodes, trees []*PersistentWatch
	children     int64 // the zxid of the last zk.EventNodeChildrenChanged
}

// all returns the list for a mode.
func (p *pathWatchers) all(mode WatchMode) *[]*PersistentWatch {
	if mode == WatchTree {
		return &p.trees
	}
	return &p.nodes
}

// mode returns what the server must watch.
func (p *pathWatchers) mode() WatchMode {
	switch {
	case p == nil:
		return 0
	case len(p.trees) > 0:
		return WatchTree
	case len(p.nodes) > 0:
		return WatchNode
	}
	return 0
}

// add adds a watch, unless it was added before.
func (ws *watchers) add(w *PersistentWatch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byPath == nil {
		ws.byPath = map[string]*pathWatchers{}
	}
	p := ws.byPath[w.full]
	if p == nil {
		p = &pathWatchers{}
		ws.byPath[w.full] = p
	}
	if all := p.all(w.mode); !slices.Contains(*all, w) {
		*all = append(*all, w)
	}
}

// begin has a watch of s told all events from now on. Before, only those would be told that the server
// sends for other watches of the client.
func (ws *watchers) begin(s *session, w *PersistentWatch) {
	told := WatchEvent{Type: zk.EventNotWatching, Path: w.relative(w.full), Session: s.id()}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.tellBegin && !w.set {
		w.tell(told)
	}
	w.set = true
}

// remove ends a watch. It returns the latest session, or nil if there is none.
func (ws *watchers) remove(w *PersistentWatch, reason error) *session {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if p := ws.byPath[w.full]; p != nil {
		all := p.all(w.mode)
		*all = slices.DeleteFunc(*all, func(other *PersistentWatch) bool { return other == w })
		if p.mode() == 0 {
			delete(ws.byPath, w.full)
		}
	}
	select {
	case <-w.done:
	default:
		w.err = reason
		close(w.done)
	}
	return ws.source
}

// reason returns why a watch has ended.
func (ws *watchers) reason(w *PersistentWatch) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.err
}

// wanted returns what the server must watch at path; 0 means nothing.
func (ws *watchers) wanted(path string) WatchMode {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byPath[path].mode()
}

// adopt makes s the session whose events are reported, unless it has ended: a later session may have
// been adopted. It returns what the server must watch.
func (ws *watchers) adopt(s *session) map[string]WatchMode {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	select {
	case <-s.done:
	default:
		ws.source = s
	}
	modes := make(map[string]WatchMode, len(ws.byPath))
	for path, p := range ws.byPath {
		modes[path] = p.mode()
	}
	return modes
}

// paths returns all watched paths, sorted.
func (ws *watchers) paths() []string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	paths := make([]string, 0, len(ws.byPath))
	for path := range ws.byPath {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// event reports an event to the watches that cover it. The goroutine that reads the connection
// calls it.
func (ws *watchers) event(s *session, e zk.Event, zxid int64) {
	told := WatchEvent{Type: e.Type, Path: e.Path, Zxid: max(zxid, 0), Session: s.id()}
	ofTree := s.watches.mayHaveTree(znode.Parent(e.Path))
	hidden := s.watches.hidden(e.Path)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.source != s || len(ws.byPath) == 0 {
		return
	}
	if e.Type == zk.EventNodeChildrenChanged {
		ws.shownLocked(e.Path, hidden).childrenChanged(told)
		return
	}
	if p := ws.shownLocked(e.Path, hidden); p != nil {
		tellAll(p.nodes, told)
	}
	for path := e.Path; ; path = znode.Parent(path) {
		if p := ws.shownLocked(path, hidden); p != nil {
			tellAll(p.trees, told)
		}
		if path == "/" {
			break
		}
	}
	if ofTree {
		ws.childEventLocked(told, hidden)
	}
}

// shownLocked returns the watches of a path, unless it is one of hidden.
func (ws *watchers) shownLocked(path string, hidden []string) *pathWatchers {
	if slices.Contains(hidden, path) {
		return nil
	}
	return ws.byPath[path]
}

// childEventLocked reports a change of the children to the watches of the parent.
func (ws *watchers) childEventLocked(told WatchEvent, hidden []string) {
	if told.Type == zk.EventNodeDataChanged || told.Path == "/" {
		return
	}
	told.Type, told.Path = zk.EventNodeChildrenChanged, znode.Parent(told.Path)
	ws.shownLocked(told.Path, hidden).childrenChanged(told)
}

// childrenChanged reports a change of the children once, if the server tells the transaction.
func (p *pathWatchers) childrenChanged(told WatchEvent) {
	if p == nil || told.Zxid > 0 && told.Zxid == p.children {
		return
	}
	p.children = told.Zxid
	tellAll(p.nodes, told)
}

// tellAll reports an event to those of the watches that a server has set.
func tellAll(all []*PersistentWatch, told WatchEvent) {
	for _, w := range all {
		if w.set {
			e := told
			e.Path = w.relative(told.Path)
			w.tell(e)
		}
	}
}

// missed reports to the watches of path that events may have been missed before.
func (ws *watchers) missed(s *session, path string) {
	told := WatchEvent{Type: zk.EventNotWatching, Path: path, Session: s.id()}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if p := ws.byPath[path]; p != nil && ws.source == s {
		tellAll(p.nodes, told)
		tellAll(p.trees, told)
	}
}

// endAll ends all watches. It returns them.
func (ws *watchers) endAll(reason error) (all []*PersistentWatch) {
	ws.mu.Lock()
	for _, p := range ws.byPath {
		all = append(append(all, p.nodes...), p.trees...)
	}
	ws.mu.Unlock()
	for _, w := range all {
		ws.remove(w, reason)
	}
	return all
}

// close ends all watches with ErrClosed, and waits until their functions have handled all events,
// for at most timeout.
func (ws *watchers) close(timeout time.Duration) {
	begun := time.Now()
	for _, w := range ws.endAll(ErrClosed) {
		w.events.Close(max(timeout-time.Since(begun), 0))
	}
}
