package queue

// Neighbours is how many places are known to those behind them.
func Neighbours() (n int) {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	for _, all := range neighbours.all {
		n += len(all)
	}
	return n
}
