package framework

import "github.com/docent-zk/docent/framework/internal/conn"

// Armed is how many watches a session has on the servers.
func Armed(s *Session) int { return len(s.bound.hub.pending()) }

// Watched is how many watches a session keeps.
func Watched(s *Session) int {
	s.bound.hub.mu.Lock()
	defer s.bound.hub.mu.Unlock()
	return len(s.bound.hub.table)
}

// PretendSuspension makes it look as if the machine had just been suspended for d.
var PretendSuspension = conn.PretendSuspension

// Replacing is how many sessions wait for the next one.
func Replacing(c *Client) int {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return len(c.core.replace)
}
