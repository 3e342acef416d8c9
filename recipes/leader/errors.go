package leader

import "errors"

var (
	// ErrRunning means that an Election or a Latch stands for election already.
	ErrRunning = errors.New("leader: running already")
	// ErrNotStarted means that a Latch was asked for a term before Start.
	ErrNotStarted = errors.New("leader: the latch was not started")
	// ErrLatchClosed means that a Latch is over, by Close or with the context of Start. Curator: EOFException.
	ErrLatchClosed = errors.New("leader: the latch is closed")
	// ErrInterrupted is the cause of the end of a leader's context by Election.Interrupt.
	ErrInterrupted = errors.New("leader: interrupted")
)
