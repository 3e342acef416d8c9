// Package metrics is what the client and the recipes measure. Give a [Metrics] to framework.WithMetrics.
package metrics

import (
	"fmt"
	"slices"
	"time"
)

// Metrics receives measurements. Its methods are called concurrently, by what is measured, and must not
// block. There will be further instruments and labels: an adapter registers what Instruments returns, and
// passes on the labels that it is given.
type Metrics interface {
	Add(i Instrument, n int64, l Labels)            // to a Counter, or to an UpDownCounter, where n may be negative
	Record(i Instrument, d time.Duration, l Labels) // in a Histogram
}

// Instrument is one thing that is measured. Instruments lists them.
type Instrument int

const (
	// LockWait is how long an acquire took, whatever its outcome. Re-entering is not measured.
	LockWait Instrument = iota
	// LockHold is how long a lock was held, whatever ended it. Reentrant holds of one lock are one hold.
	LockHold
	// LockWaiters is the present number of waiters.
	LockWaiters
	// LockLosses counts the locks that were lost before they were released.
	LockLosses
	// SessionLosses counts the sessions that were lost or closed, and how often the servers begin to refuse a
	// credential.
	SessionLosses
	// Reconnects counts the connections after the first, with the same session or with a new one.
	Reconnects
	// PendingDeletions is the present number of cleanups in the background, releases included.
	PendingDeletions
)

// Kind is how the measurements of an Instrument add up.
type Kind int

const (
	// Counter only grows.
	Counter Kind = iota
	// UpDownCounter is a value that rises and falls, reported as increments. It is 0 once the client is closed.
	UpDownCounter
	// Histogram is a distribution of durations.
	Histogram
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case UpDownCounter:
		return "up-down counter"
	case Histogram:
		return "histogram"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Labels tell measurements of one Instrument apart. Labels that an instrument does not have are empty.
type Labels struct {
	Recipe  string // the kind of lock: "mutex"
	Path    string // of the lock, as it was given to the recipe: there may be any number of them
	Outcome string // of acquiring: one of the Outcome constants
	Cause   string // of an end: one of the Cause constants
}

// Values of Labels.Outcome.
const (
	OutcomeAcquired    = "acquired"
	OutcomeNotAcquired = "not_acquired" // because of other holders or waiters
	OutcomeFailed      = "failed"
)

// Values of Labels.Cause.
const (
	CauseReleased    = "released"     // of a hold: nothing was lost
	CauseSessionLost = "session_lost" // of a hold
	CauseNodeDeleted = "node_deleted" // of a hold
	CauseSuspended   = "suspended"    // of a hold
	CauseForeignLost = "foreign_lost" // of a hold
	CauseClosed      = "closed"       // of either: the client was closed
	CauseExpired     = "expired"      // of a session: a server says so
	CauseDeadline    = "deadline"     // of a session: the clock says so
	CauseAuthFailed  = "auth_failed"  // of a session: the servers reject a credential
)

type instrument struct {
	name, unit, description string
	kind                    Kind
	labels                  []string
}

var instruments = [...]instrument{
	LockWait: {"docent.lock.wait", "s", "How long an acquire took, whatever its outcome.", Histogram,
		[]string{"recipe", "path", "outcome"}},
	LockHold: {"docent.lock.hold", "s", "How long a lock was held, whatever ended it.", Histogram,
		[]string{"recipe", "path", "cause"}},
	LockWaiters: {"docent.lock.waiters", "{waiter}", "Waiters of a lock.", UpDownCounter,
		[]string{"recipe", "path"}},
	LockLosses: {"docent.lock.losses", "{hold}", "Locks lost before they were released.", Counter,
		[]string{"recipe", "path", "cause"}},
	SessionLosses:    {"docent.session.losses", "{session}", "Sessions lost, closed or refused.", Counter, []string{"cause"}},
	Reconnects:       {"docent.connection.reconnects", "{connection}", "Connections made again.", Counter, nil},
	PendingDeletions: {"docent.deletions.pending", "{deletion}", "Cleanups in the background.", UpDownCounter, nil},
}

// Instruments returns all instruments.
func Instruments() []Instrument {
	all := make([]Instrument, len(instruments))
	for i := range all {
		all[i] = Instrument(i)
	}
	return all
}

func (i Instrument) about() instrument {
	if i < 0 || int(i) >= len(instruments) {
		return instrument{name: fmt.Sprintf("docent.instrument.%d", int(i))}
	}
	return instruments[i]
}

// Name returns a name such as "docent.lock.wait".
func (i Instrument) Name() string { return i.about().name }

// String returns the name.
func (i Instrument) String() string { return i.Name() }

// Unit returns "s" for durations, and otherwise what is counted, in braces, as in UCUM.
func (i Instrument) Unit() string { return i.about().unit }

// Description returns a sentence that says what is measured.
func (i Instrument) Description() string { return i.about().description }

// Kind returns how the measurements add up.
func (i Instrument) Kind() Kind { return i.about().kind }

// Labels are the fields of Labels that measurements have, in lower case.
func (i Instrument) Labels() []string { return slices.Clone(i.about().labels) }
