package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/internal/signal"
)

// WatchMode is what a PersistentWatch covers. ZooKeeper: AddWatchMode.
type WatchMode int

const (
	// WatchNode covers one node: its creation, deletion and data, and its list of children.
	WatchNode WatchMode = iota + 1
	// WatchTree covers a node and all nodes below it: their creation, deletion and data. There is no
	// zk.EventNodeChildrenChanged: each child has events of its own.
	WatchTree
)

// String returns the name of the constant.
func (m WatchMode) String() string {
	switch m {
	case WatchNode:
		return "WatchNode"
	case WatchTree:
		return "WatchTree"
	}
	return fmt.Sprintf("WatchMode(%d)", int(m))
}

// covers reports whether a watch on the servers receives all events of a one-shot watch of the same
// path.
func (m WatchMode) covers(kind watchKind) bool {
	return m == WatchNode || m == WatchTree && kind != watchChildren
}

// WatchEvent is an event of a PersistentWatch.
type WatchEvent struct {
	// Type is zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged or
	// zk.EventNodeChildrenChanged. Or it is zk.EventNotWatching: the watch was set again after a
	// reconnect or in another session, and events may have been missed. What is read from now on is
	// watched.
	Type zk.EventType
	// Path is the path of the node, relative to the namespace of the client. With
	// zk.EventNotWatching it is the path of the watch.
	Path string
	// Zxid is the transaction that is the cause, or 0 if the server does not tell it. Servers tell it
	// since 3.9.
	Zxid int64
	// Session is the id of the session in which the event was received. With zk.EventNotWatching,
	// another id than before means that the client has lost its session.
	Session int64
}

// PersistentWatch calls a function for each event of a node or of a tree, until it is stopped or the
// client is closed. Client.AddWatch returns it. It is safe for concurrent use. Curator:
// PersistentWatcher.
type PersistentWatch struct {
	core   *core
	root   string // of the view
	full   string
	mode   WatchMode
	events listen.Listeners[WatchEvent]
	tell   func(WatchEvent) // called by the goroutine that reads the connection, with a lock held
	unhear func()           // no call of the function begins afterwards
	// tellBegin has zk.EventNotWatching told for the first time when a server has set the watch.
	tellBegin bool

	done chan struct{}
	set  bool  // a server has set it, so that it is told events; guarded by the mu of watchers
	err  error // guarded by the mu of watchers
}

// AddWatch watches a node, which need not exist, or a tree. It returns when a server has set the
// watch. fn is called for each change that the server applies after that, in the order of the
// server's events, one at a time, in a goroutine of its own. fn may be called before AddWatch
// returns. A slow fn delays nothing else and misses no event: its events wait in memory, and there is
// no limit for their number. fn must not wait for Client.Close.
//
// The watch outlives connections and sessions. On each new connection it is set again before any
// other request is made. Then fn is called with zk.EventNotWatching, because the servers do not tell
// what has changed in between: read again what must be known. Within one connection no event is
// missed. An event is in the queue of fn before the client returns any answer that shows the change.
// Two exceptions are told by zk.EventNotWatching too. The first is a read that sets a one-shot watch
// on the same path while AddWatch is in progress. This may be told after AddWatch has returned. The
// second is a server that has refused to set the watch again. The client then tries again: within
// seconds if the server was busy, or else about once a minute. Between a missed event and
// zk.EventNotWatching fn is not called.
//
// The servers send no events of nodes that the client may not read. WatchNode and WatchTree on one
// path of one client share the server's watch. Then zk.EventNodeChildrenChanged follows from the
// events of the children, and may come twice for one change.
//
// All watches of a client with the same path and mode share one watch on the server. AddWatch waits
// and fails as other operations do: it is repeated by the retry policy, in any session. If it fails,
// there is no watch. Servers before 3.6 do not know such watches. Then the error matches
// ErrUnimplemented. Such a server closes the connection after its answer, so the client does not ask
// again. Curator: watchers().add().
func (c *Client) AddWatch(
	ctx context.Context, path string, mode WatchMode, fn func(WatchEvent),
) (*PersistentWatch, error) {
	w := &PersistentWatch{mode: mode}
	w.tell, w.unhear = w.events.Tell, func() {}
	if fn != nil {
		w.unhear = w.events.Listen(fn)
	}
	return c.watch(ctx, path, w, checkWatch(mode, fn))
}

// watch has w watch a path. invalid is an error of the arguments, or nil.
func (c *Client) watch(ctx context.Context, path string, w *PersistentWatch, invalid error) (*PersistentWatch, error) {
	o := c.ops
	call := o.call("watch", path, repeatable).require(invalid)
	w.core, w.root, w.full, w.done = o.core, o.root, call.full, make(chan struct{})
	_, err := run(ctx, o, call, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, s.addWatch(ctx, w)
	})
	if err == nil && w.Err() != nil {
		err = call.failed(NotApplied, w.Err())
	}
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

func checkWatch(mode WatchMode, fn func(WatchEvent)) error {
	switch {
	case mode != WatchNode && mode != WatchTree:
		return invalid("%v: want WatchNode or WatchTree", mode)
	case fn == nil:
		return invalid("the function of a watch is nil")
	}
	return nil
}

// Stop ends the watch. No call of its function begins after that; a call may be in progress. The
// last watch of a path and mode is removed from the server in the background. A second Stop does
// nothing.
func (w *PersistentWatch) Stop() {
	if w.core == nil {
		return
	}
	w.unhear()
	if s := w.core.watchers.remove(w, nil); s != nil {
		s.settle(w.full)
	}
}

// Done returns a channel that is closed when the watch has ended.
func (w *PersistentWatch) Done() <-chan struct{} {
	if w.core == nil {
		return signal.Closed
	}
	return w.done
}

// Err returns nil while the watch lasts, and after Stop. Otherwise it returns why the watch has
// ended: ErrClosed, or ErrUnimplemented if the client has reconnected to an older server.
func (w *PersistentWatch) Err() error {
	if w.core == nil {
		return ErrZeroValue
	}
	return w.core.watchers.reason(w)
}

// addWatch makes one attempt to have the watch on the server.
func (s *session) addWatch(ctx context.Context, w *PersistentWatch) error {
	if s.core.noWatches.Load() {
		return notApplied(ErrUnimplemented)
	}
	s.core.watchers.add(w)
	p, err := begin[nothing](ctx, s)
	if err != nil {
		return err
	}
	s.watches.await(w.full, w.mode, func(err error) {
		if err == nil {
			s.core.watchers.begin(s, w)
		}
		p.complete(nothing{}, err)
	})
	s.settle(w.full)
	_, err = p.wait(ctx, nil)
	if errors.Is(err, ErrUnimplemented) {
		s.awaitHangup(ctx)
	}
	return err
}

// settle sends the next request that makes the server's watch at path what the client's watches
// want. It waits for nothing.
func (s *session) settle(path string) { s.settleBy(s.watches.next(path, s.core.watchers.wanted)) }

// settleBy sends a request of settle, on the connection for which it was decided.
func (s *session) settleBy(n nextRequest) {
	for _, complete := range n.completed {
		complete(nil)
	}
	if n.standing == nil {
		return
	}
	request := conn.RemoveWatches(n.path, conn.AnyWatch)
	if n.mode != 0 {
		request = conn.AddWatch(n.path, n.mode == WatchTree)
	}
	s.postOn(n.link, request, func(reply conn.Reply) { s.sent(n, reply) })
}

// sent handles the reply to a request of settle. A watch of a node takes the place of one of a tree in
// 3.8. In 3.9 that is removed before the next request for the path.
func (s *session) sent(n nextRequest, reply conn.Reply) {
	if n.mode == WatchNode && n.before == WatchTree && reply.Err() == nil {
		s.postOn(n.link, conn.RemoveWatches(n.path, conn.RecursiveWatch), func(conn.Reply) {})
	}
	s.settled(n.standing, n.mode, n.gap, reply.Err())
}

// post makes a request without waiting. If there is no connection, done gets the error.
func (s *session) post(r conn.Request, done func(conn.Reply)) { s.postOn(s.conn.Link(), r, done) }

// postOn makes a request on one connection. If that has ended, done gets the error.
func (s *session) postOn(link conn.Link, r conn.Request, done func(conn.Reply)) {
	if s.beginRequest() != nil {
		done(conn.NotSent())
		return
	}
	link.Ask(r, func(reply conn.Reply) {
		defer s.inflight.Done()
		done(reply)
	})
}

// settled handles the reply to a request that has set or removed the server's watch. gap means that
// events may have been missed before.
func (s *session) settled(st *standing, mode WatchMode, gap bool, err error) {
	if mode == 0 && isNoWatcher(err) {
		err = nil
	}
	err = replyError(err)
	completed, shots := s.watches.settled(st, mode, gap, err)
	switch {
	case err == nil && gap:
		s.core.watchers.missed(s, st.path)
	case errors.Is(err, ErrUnimplemented):
		s.core.endWatches()
	case isBusy(err):
		s.watches.checkAgain()
	case err != nil && !IsTransient(err):
		s.core.cfg.log.Warn("a server refuses a watch", zap.String("path", st.path), zap.Error(err))
	}
	for _, complete := range completed {
		complete(err)
	}
	for _, w := range shots {
		s.recheck(w)
	}
	if err == nil || !s.watches.current(st) {
		s.settle(st.path)
	}
}

// isBusy reports whether a server has refused a request that it may not refuse later.
func isBusy(err error) bool {
	var refusal *ServerError
	return errors.As(err, &refusal) && IsTransient(err)
}

// isNoWatcher reports whether a server has said that there is nothing to remove.
func isNoWatcher(err error) bool {
	var code conn.Code
	return errors.As(err, &code) && code == -121
}

// endWatches ends all persistent watches, because the servers do not know them.
func (c *core) endWatches() {
	if !c.noWatches.Swap(true) {
		c.cfg.log.Warn("the servers do not know persistent watches")
	}
	for _, w := range c.watchers.endAll(fmt.Errorf("%w: persistent watches", ErrUnimplemented)) {
		w.events.Close(0) // their goroutines end when they have handled all events
	}
}

// recheck reads what a one-shot watch watches, and fires it if that has changed. It sets the
// server's watch, unless a persistent one covers it.
func (s *session) recheck(w *watched) {
	watch := s.watches.askAgain(w.key)
	request, parse := w.key.request(watch)
	s.post(request, func(reply conn.Reply) {
		r, err := parse(reply)
		if watch {
			s.answeredAgain(w.key, err == nil)
		}
		switch err = replyError(err); {
		case err == nil || isNoNode(err):
			s.watches.compare(w.key, w, r.version(w.key.kind))
		case isBusy(err):
			s.watches.setAgain()
		}
	})
}

// answeredAgain registers the end of a request of askAgain.
func (s *session) answeredAgain(key watchKey, set bool) {
	if s.watches.unflag(key, set) {
		s.settle(key.path)
	}
}

// persistentRequests returns the requests that set the client's watches on a new connection. Their
// events are reported from now on, and those of other sessions are not.
func (s *session) persistentRequests() (all []conn.Request) {
	batches, stopped := s.watches.renew(s.conn.Link(), s.core.watchers.adopt(s))
	for _, complete := range stopped {
		complete(nil)
	}
	for _, some := range batches {
		var nodes, trees []string
		for _, st := range some {
			if st.asked == WatchTree {
				trees = append(trees, st.path)
			} else {
				nodes = append(nodes, st.path)
			}
		}
		all = append(all, conn.SetPersistent(nodes, trees).Then(func(reply conn.Reply) {
			for _, st := range some {
				s.settled(st, st.asked, true, reply.Err())
			}
		}))
	}
	return all
}

// relative returns the path as the caller of AddWatch sees it.
func (w *PersistentWatch) relative(full string) string { return znode.Strip(w.root, full) }
