package framework

import (
	"github.com/docent-zk/docent/framework/internal/conn"
)

// Armed returns how many watches a session has set on the servers.
func Armed(s *Session) int { return len(s.bound.watches.armed()) }

// Watched returns how many watches are in the table of a session.
func Watched(s *Session) int {
	s.bound.watches.mu.Lock()
	defer s.bound.watches.mu.Unlock()
	return len(s.bound.watches.entries)
}

// PretendSuspension pretends that the machine has just been suspended for d.
var PretendSuspension = conn.PretendSuspension

// Replacing returns how many lost sessions wait to be replaced.
func Replacing(c *Client) int {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return len(c.core.onReplaced)
}

// StopLater is PersistentWatch.Stop without its request to the server, which send sends.
func StopLater(w *PersistentWatch) (send func()) {
	w.unhear()
	s := w.core.watchers.remove(w, nil)
	next := s.watches.next(w.full, s.core.watchers.wanted)
	return func() { s.settleBy(next) }
}
