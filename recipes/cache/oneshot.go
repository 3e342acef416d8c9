package cache

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// oneShot is the source for servers without persistent watches: each read sets a watch. The
// framework sets the watches again after a reconnect.
type oneShot struct {
	f        *follower
	set      map[watchKey]bool
	session  int64 // in which the watches are set
	unlisten func()

	mu      sync.Mutex
	watches map[*framework.Watch]func() // those whose events are not handled, each with what ends its report
	stopped bool
}

// watchKey is the watch of a node's list of children, or that of its data.
type watchKey struct {
	path     string
	children bool
}

func keyOf(path string, kind bridge.ReadKind) watchKey {
	return watchKey{path, kind == bridge.ReadChildren}
}

// newOneShot makes the source and waits for nothing.
func newOneShot(f *follower) *oneShot {
	s := &oneShot{f: f, watches: map[*framework.Watch]func(){}, set: map[watchKey]bool{}}
	s.unlisten = f.client.Listen(func(c framework.StateChange) {
		if c.State.IsConnected() {
			f.tell(s.connected)
		} else {
			f.tell(func() { f.broke(c.At) })
		}
	})
	if f.client.State().IsConnected() {
		f.tell(s.connected)
	} else {
		f.broke(time.Now())
	}
	return s
}

func (s *oneShot) oneShot() bool { return true }

func (s *oneShot) mustList(path string) bool { return !s.set[watchKey{path, true}] }

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
	key := keyOf(path, kind)
	s.watches[w] = bridge.OfWatch(w).Then(func() {
		s.f.tell(func() {
			s.forget(w)
			delete(s.set, key)
			s.fired(key, w.Event())
		})
	})
}

func (s *oneShot) forget(w *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// taken notes that a watch is set, unless its event is handled already. The watch of an answer that
// was not used does not count: the node is read, and its children are listed, once more. The
// goroutine that reads the connection may not have called follow yet.
func (s *oneShot) taken(path string, kind bridge.ReadKind, w *framework.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.Fired():
		if s.watches[w] == nil {
			return
		}
	default:
	}
	s.set[keyOf(path, kind)] = true
}

// fired reads what a watch has reported. Once both watches of a node have fired, the servers do not
// report that it is deleted.
func (s *oneShot) fired(key watchKey, event zk.EventType) {
	j := s.f.want(key.path)
	other := s.set[watchKey{key.path, !key.children}]
	if !other || event != zk.EventNodeDataChanged && event != zk.EventNodeChildrenChanged {
		j.replace()
	}
}
