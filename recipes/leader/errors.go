package leader

import "errors"

var (
	// ErrRunning means that Run of an Election runs already, or that a Latch was started before.
	ErrRunning = errors.New("leader: already running")
	// ErrNotStarted means that Await of a Latch was called before Start.
	ErrNotStarted = errors.New("leader: the latch was not started")
	// ErrLatchClosed means that a Latch is closed: by Close, by the end of the context of Start, or
	// because the client is closed. Curator: EOFException.
	ErrLatchClosed = errors.New("leader: the latch is closed")
	// ErrInterrupted is the cause of the end of a leader's context by Election.Interrupt.
	ErrInterrupted = errors.New("leader: interrupted")
)
