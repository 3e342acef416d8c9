package cache

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// persistent is the source for servers with persistent watches: one watch reports all changes. The
// servers do not report what has changed while the connection was lost.
type persistent struct {
	f        *follower
	watch    *framework.PersistentWatch
	set      time.Time // when a server has set the watch on the last connection that had it
	unlisten func()
}

// newSource sets the watch. It waits until a server has set it, or the follower must end.
func newSource(f *follower) source {
	mode := framework.WatchTree
	if f.cfg.depth == 0 {
		mode = framework.WatchNode
	}
	for {
		s := &persistent{f: f}
		s.unlisten = f.client.Listen(s.changed)
		watch, err := bridge.Of(f.client).Watch(f.ctx, f.root, mode, s.event)
		if err == nil {
			s.watch = watch
			s.checkConnection()
			return s
		}
		s.unlisten()
		if errors.Is(err, framework.ErrUnimplemented) {
			return newOneShot(f)
		}
		if !f.waitToWatch(err) {
			return s
		}
	}
}

// checkConnection notes that there is no connection. Its loss may have been told before the watch on it, if the
// client had the watch already: then zk.EventNotWatching comes from another goroutine.
func (s *persistent) checkConnection() {
	at := time.Now()
	if !s.f.client.State().IsConnected() {
		s.tell(func() { s.lost(at) })
	}
}

// watchPause is the pause before the next attempt to set the watch.
const watchPause = time.Second

// waitToWatch waits before the next attempt. It reports false if the follower must end.
func (f *follower) waitToWatch(err error) bool {
	if f.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) {
		f.log.Warn("cannot watch: trying again", zap.Error(err), zap.Duration("pause", watchPause))
	}
	timer := time.NewTimer(watchPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.ctx.Done():
	case <-f.client.Done():
	}
	return false
}

func (s *persistent) oneShot() bool { return false }

func (s *persistent) mustList(string) bool { return false }

func (s *persistent) taken(string, bridge.ReadKind, *framework.Watch) {}

func (s *persistent) follow(string, bridge.ReadKind, *framework.Watch) {}

func (s *persistent) ended() <-chan struct{} {
	if s.watch == nil {
		return nil
	}
	return s.watch.Done()
}

func (s *persistent) stop() {
	s.unlisten()
	if s.watch != nil {
		s.watch.Stop()
	}
}

// tell has the follower call fn, unless the watch is that of an earlier attempt, or its servers know it no more.
func (s *persistent) tell(fn func()) {
	s.f.tell(func() {
		if s.f.source == s {
			fn()
		}
	})
}

// changed is called when the client's state has changed.
func (s *persistent) changed(c framework.StateChange) {
	if !c.State.IsConnected() {
		s.tell(func() { s.lost(c.At) })
	}
}

// event is called by the goroutine that reads the connection. So all that was read before the event
// is in the inbox before it. The first event may come from another goroutine.
func (s *persistent) event(e framework.WatchEvent) {
	at := time.Now()
	s.tell(func() { s.handle(e, at) })
}

func (s *persistent) handle(e framework.WatchEvent, at time.Time) {
	switch {
	case e.Type == zk.EventNotWatching:
		s.set = at
		s.f.reset()
	case e.Type == zk.EventNodeChildrenChanged, !s.f.covers(e.Path):
	default:
		j := s.f.want(e.Path)
		if e.Type != zk.EventNodeDataChanged {
			j.replace()
		}
	}
}

// lost notes a loss of the connection, unless the watch was set again since.
func (s *persistent) lost(at time.Time) {
	if at.After(s.set) {
		s.f.broke(at)
	}
}
