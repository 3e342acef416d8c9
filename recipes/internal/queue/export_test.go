package queue

// Neighbours is how many places are known to those behind them.
func Neighbours() int {
	neighbours.mu.Lock()
	defer neighbours.mu.Unlock()
	return len(neighbours.all)
}
