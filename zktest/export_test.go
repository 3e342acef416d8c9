package zktest

// Alarms is how many things the server has to do at some time.
func Alarms(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.alarms.Len()
}

// Served is how many connections have goroutines.
func Served(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.life.conns)
}
