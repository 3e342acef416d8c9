package zktest

import (
	"slices"

	"github.com/docent-zk/docent/zktest/fault"
)

// On adds a rule. It fires for the first m.Times matching requests after m.Skip of them. Rules are
// tried in the order in which they were added. The first that fires decides, and later rules do not
// see the request unless the action is [fault.Pass]. On panics if the rule can never fire. Such
// rules have a negative number, a malformed pattern, a path without a leading /, or a path with a
// type that has none. Others have a type that clients do not send, or a failure without an error.
func (s *Server) On(m fault.Match, a fault.Action) *fault.Rule { return s.rules.Add(m, a) }

// ResetFaults removes all rules and undoes all switches of all clients, for tests that share a
// server. Followers, a pause and stopped servers stay as they are.
func (s *Server) ResetFaults() {
	for _, r := range s.rules.All() {
		r.Remove()
	}
	s.mu.Lock()
	clients := slices.Clone(s.clients)
	s.mu.Unlock()
	for _, c := range clients {
		c.Heal()
		c.Thaw()
		c.ReleaseEvents()
		c.Blackhole(false)
		c.Refuse(false)
	}
}
