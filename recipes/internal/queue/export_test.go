package queue

import (
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// LocalPredecessors returns the number of queue nodes that waiters of the session know.
func LocalPredecessors(s *framework.Session) (n int) {
	shared := bridge.Local[shared](bridge.OfSession(s))
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, all := range shared.watched {
		n += len(all)
	}
	return n
}
