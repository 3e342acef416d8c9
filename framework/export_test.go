package framework

// Armed is how many watches a session has on the servers.
func Armed(s *Session) int { return len(s.bound.hub.pending()) }
