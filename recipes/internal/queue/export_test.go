package queue

// LocalPredecessors returns the number of queue nodes that waiters of the same session know.
func LocalPredecessors() (n int) {
	watchedWaiters.mu.Lock()
	defer watchedWaiters.mu.Unlock()
	for _, all := range watchedWaiters.all {
		n += len(all)
	}
	return n
}
