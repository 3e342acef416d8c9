package queue

import (
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// SameSessionWaiters returns the number of queue nodes that waiters of the session know.
func SameSessionWaiters(s *framework.Session) (n int) {
	state := bridge.Local[sessionState](bridge.OfSession(s))
	state.mu.Lock()
	defer state.mu.Unlock()
	for _, all := range state.watched {
		n += len(all)
	}
	return n
}
