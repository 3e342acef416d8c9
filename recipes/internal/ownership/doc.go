// Package ownership is what holds are made of.
//
// An ownership is what the reentrant holds of one lock share: the lock nodes, the time at which
// it was acquired, requests to release it, and why it has ended. What is owned is a resource:
// lock nodes (nodes.go), holds that are held as one (parts.go), or a lock of another service
// (foreign.go).
//
// An ownership ends once: by the release of its last hold, or by a loss, which ends all of its
// holds at once. Its nodes are deleted, or, if a Handoff says so, passed on to another hold.
//
// The order of the locks: ownership.mu; then, by Handoff.Next, localQueues.mu of package handoff;
// then Hold.mu, nodeWatcher.mu, and those of package framework. An ownership's mu is never taken
// while that of one of its parts is held.
package ownership
