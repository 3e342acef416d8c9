// Package ownership is what holds are made of.
//
// An ownership is what the reentrant holds of one lock share: the lock nodes, the time at which
// it was acquired, requests to release it, and why it has ended. What is owned is a resource:
// lock nodes (nodes.go), holds that are held as one (parts.go), or a lock of another service
// (foreign.go).
//
// An ownership ends once: by the release of its last hold, or by a loss, which ends all of its
// holds at once. Then its nodes are deleted. If a Handoff passes the nodes on or keeps them, the
// last release ends the hold alone, and the ownership goes on with another hold (handoff.go).
//
//	ownership.go, hold.go   the end of holds, by release or loss
//	nodes.go, watcher.go    lock nodes, the watch on each, and their deletion
//	parts.go, foreign.go    the other resources
//	reenter.go, several.go  re-entry by a context
//	guard.go                transactions that need the nodes
//	measure.go              metrics of holds
//
// The order of the locks: ownership.mu; then, by Handoff.Next, localQueues.mu of package handoff;
// then Hold.mu, nodeWatcher.mu, and those of package framework. An ownership's mu is never taken
// while that of one of its parts is held.
package ownership
