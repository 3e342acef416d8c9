package zktest

// Alarms returns the number of the server's alarms.
func Alarms(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.alarms.Len()
}

// Served returns the number of connections with goroutines.
func Served(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.life.conns)
}
