package queue

import "github.com/docent-zk/docent/framework"

// LocalPredecessors returns the number of queue nodes that waiters of the session know.
func LocalPredecessors(s *framework.Session) (n int) {
	known := watchedWaitersOf(s)
	known.mu.Lock()
	defer known.mu.Unlock()
	for _, all := range known.all {
		n += len(all)
	}
	return n
}
