package cache

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// oneShot is the source for servers without persistent watches: each read sets a watch. The
// framework sets the watches again after a reconnect.
type oneShot struct {
	f        *follower
	lists    map[string]bool // the paths whose list of children is watched
	session  int64           // in which the watches are set
	unlisten func()

	mu      sync.Mutex
	watches map[*framework.Watch]func() // those whose events are not handled, each with what ends its report
	stopped bool
}

// newOneShot makes the source and waits for nothing.
func newOneShot(f *follower) *oneShot {
	s := &oneShot{f: f, watches: map[*framework.Watch]func(){}, lists: map[string]bool{}}
	s.unlisten = f.client.Listen(func(c framework.StateChange) {
		if c.State.IsConnected() {
			f.tell(s.connected)
		} else {
			f.tell(func() { f.broke(c.At) })
		}
	})
	if f.client.State().IsConnected() {
		f.tell(s.connected)
	}
	return s
}

func (s *oneShot) oneShot() bool { return true }

func (s *oneShot) mustList(path string) bool { return !s.lists[path] }

func (s *oneShot) ended() <-chan struct{} { return nil }

// stop ends the reports, so that no watch keeps the tree in memory until it fires.
func (s *oneShot) stop() {
	s.unlisten()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for w, forget := range s.watches {
		forget()
		dropWatch(w)
	}
}

// connected continues after a loss of the connection. The watches of a session that has ended fire
// at some time, so everything is read. Those of a session that has reconnected fire before the
// answer to the next read, in no order: until then any node may be another one than in the tree. A
// refused read has set no watch.
func (s *oneShot) connected() {
	if !s.f.connected() {
		return
	}
	if id := s.f.session.ID(); id != s.session {
		s.session = id
		s.f.reset()
		return
	}
	s.f.want(s.f.root).replace()
	for at, e := range s.f.tree.entries {
		if e.node.Err != nil {
			s.f.want(at)
		}
	}
	s.f.sortQueue()
}

// follow has the event of a watch put into the inbox. Reads of the same kind share one watch until
// it fires.
func (s *oneShot) follow(path string, kind bridge.ReadKind, w *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.watches[w] != nil {
		dropWatch(w)
		return
	}
	s.watches[w] = bridge.OfWatch(w).Then(func() {
		s.f.tell(func() {
			s.forget(w)
			if kind == bridge.ReadChildren {
				delete(s.lists, path)
			}
			s.fired(path, w.Event())
		})
	})
}

func (s *oneShot) forget(w *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// taken notes that the list of a node's children is watched, unless the event is handled already.
func (s *oneShot) taken(path string, kind bridge.ReadKind, w *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == bridge.ReadChildren && s.watches[w] != nil {
		s.lists[path] = true
	}
}

// fired reads what a watch has reported.
func (s *oneShot) fired(path string, event zk.EventType) {
	j := s.f.want(path)
	if event != zk.EventNodeDataChanged && event != zk.EventNodeChildrenChanged {
		j.replace()
	}
}
