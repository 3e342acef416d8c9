// Package effect lets servers and proxies read actions of package fault.
package effect

import "time"

// Kind is the kind of an action.
type Kind int

// The kinds, each with the name of the function that returns the action. Hold is also the kind of
// delays.
const (
	Pass Kind = iota
	DropBefore
	DropAfter
	Hold
	Reset
	Fail
	Truncate
)

// Effect is what an action does with a request.
type Effect struct {
	Kind  Kind
	Delay time.Duration // of Hold: the longest; negative means no limit
	Code  int32         // of Fail: the error
	Bytes int           // of Truncate: the length of what is sent
}
