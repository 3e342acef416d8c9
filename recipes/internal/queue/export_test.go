package queue

import (
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
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

// directory returns what is listed of a queue with the rules.
func directory(r Rules) queuelist.Directory {
	return queuelist.Directory{Conflicting: r.Conflicting, Compatible: r.Compatible}
}
