package queue

// LocalPredecessors returns the number of queue nodes that waiters of the same session know.
func LocalPredecessors() (n int) {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	for _, all := range neighbours.all {
		n += len(all)
	}
	return n
}
