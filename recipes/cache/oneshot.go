package cache

import (
	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// oneShot is the source for servers without persistent watches: each read sets a watch. The
// framework sets the watches again after a reconnect.
type oneShot struct {
	f        *follower
	watches  map[watchKey]*framework.Watch // those that have not fired
	session  int64                         // in which the watches are set
	unlisten func()
}

type watchKey struct {
	path     string
	children bool
}

// newOneShot makes the source and waits for nothing.
func newOneShot(f *follower) *oneShot {
	s := &oneShot{f: f, watches: map[watchKey]*framework.Watch{}}
	s.unlisten = f.client.Listen(func(c framework.StateChange) {
		if c.State.IsConnected() {
			f.inbox.Put(s.connected)
		} else {
			f.inbox.Put(func() { f.broke(c.At) })
		}
	})
	if f.client.State().IsConnected() {
		f.inbox.Put(s.connected)
	}
	return s
}

func (s *oneShot) oneShot() bool { return true }

func (s *oneShot) mustList(path string) bool { return s.watches[watchKey{path, true}] == nil }

func (s *oneShot) ended() <-chan struct{} { return nil }

func (s *oneShot) stop() { s.unlisten() }

// connected continues after a loss of the connection. The watches of a session that has ended have
// all fired. Those of a session that has reconnected fire before the answer to the next read, in no
// order: until then any node may be another one than in the tree. A refused read has set no watch.
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

// taken notes the watch of a read. Reads of the same kind share one watch until it fires.
func (s *oneShot) taken(path string, kind bridge.ReadKind, w *framework.Watch) {
	key := watchKey{path, kind == bridge.ReadChildren}
	if s.watches[key] == w {
		return
	}
	s.watches[key] = w
	bridge.OfWatch(w).Then(func() {
		s.f.inbox.Put(func() {
			if s.watches[key] == w {
				delete(s.watches, key)
			}
			s.fired(key, w.Event())
		})
	})
}

// fired reads what a watch has reported.
func (s *oneShot) fired(key watchKey, event zk.EventType) {
	j := s.f.want(key.path)
	if event != zk.EventNodeDataChanged && event != zk.EventNodeChildrenChanged {
		j.replace()
	}
}
