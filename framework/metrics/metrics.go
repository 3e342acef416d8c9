// Package metrics defines the measurements of the client and of the recipes. Pass a [Metrics] to
// framework.WithMetrics.
package metrics

import (
	"fmt"
	"slices"
	"time"
)

// Metrics receives measurements. Its methods are called concurrently, in the goroutines that are
// measured, and must not block. Later versions may add instruments and labels: an adapter should
// register all that Instruments returns, and pass on all labels. Gauges are not passed to it: see
// GaugeReader.
type Metrics interface {
	Add(i Instrument, n int64, l Labels)            // to a Counter, or to an UpDownCounter, where n may be negative
	Record(i Instrument, d time.Duration, l Labels) // in a Histogram
}

// Instrument is a measured quantity. Instruments returns all of them.
type Instrument int

const (
	// LockWait is how long an acquire took, whatever its outcome. A reentrant acquire is not
	// measured.
	LockWait Instrument = iota
	// LockHold is how long a lock was held, whatever ended the hold. Reentrant holds of one lock
	// count as one.
	LockHold
	// LockWaiters is the current number of waiters.
	LockWaiters
	// LockLosses counts the locks that were lost before they were released.
	LockLosses
	// SessionLosses counts the sessions that were lost or closed. It also counts how often the
	// servers begin to refuse a credential.
	SessionLosses
	// Reconnects counts the connections after the first, with the same session or with a new one.
	Reconnects
	// PendingDeletions is the current number of cleanups in the background, including releases.
	PendingDeletions
	// LocksHeld is the number of locks held now. Reentrant holds of one lock count as one, and a
	// hold of several permits too.
	LocksHeld
	// ClientStates is the number of clients in each state of the connection.
	ClientStates
	// SessionTimeout is the shortest session timeout that the servers granted the session. A client without
	// a session has none.
	SessionTimeout
	// SessionRemaining is the time until the deadline of the session, which each answer of the
	// ZooKeeper leader moves. Without a session it is 0.
	SessionRemaining
)

// Kind is how the measurements of an Instrument are combined.
type Kind int

const (
	// Counter only grows.
	Counter Kind = iota
	// UpDownCounter is a value that rises and falls, reported as increments. It is 0 once the client is closed.
	UpDownCounter
	// Histogram is a distribution of durations.
	Histogram
	// GaugeSum is a value that is read: see Gauges. The values of several clients are added.
	GaugeSum
	// GaugeMin is a value that is read. Of the values of several clients the smallest one counts.
	GaugeMin
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
	case GaugeSum:
		return "gauge (sum)"
	case GaugeMin:
		return "gauge (minimum)"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Labels distinguish measurements of one Instrument. Labels that an instrument does not have are
// empty.
type Labels struct {
	Recipe  string // the kind of lock: "mutex"
	Path    string // of the lock, as given to the recipe; their number is not limited
	Outcome string // of an acquire: one of the Outcome constants
	Cause   string // of an end: one of the Cause constants
	State   string // of a client: one of the State constants
}

// Values of Labels.Outcome.
const (
	OutcomeAcquired    = "acquired"
	OutcomeNotAcquired = "not_acquired" // because of other holders or waiters
	OutcomeFailed      = "failed"
)

// Values of Labels.Cause.
const (
	CauseReleased    = "released"     // of a hold: it was not lost
	CauseSessionLost = "session_lost" // of a hold
	CauseNodeDeleted = "node_deleted" // of a hold
	CauseSuspended   = "suspended"    // of a hold
	CauseForeignLost = "foreign_lost" // of a hold
	CauseClosed      = "closed"       // of a hold or a session: the client was closed
	CauseExpired     = "expired"      // of a session: a server reported it
	CauseDeadline    = "deadline"     // of a session: its deadline passed
	CauseAuthFailed  = "auth_failed"  // of a session: the servers refuse a credential
)

// Values of Labels.State. Each client reports all of them, 1 for the present one and 0 for the others.
const (
	StateConnecting = "connecting"  // there was no session yet
	StateConnected  = "connected"   // there are a session and a connection
	StateSuspended  = "suspended"   // there is no connection, and the session may live
	StateLost       = "lost"        // the session was lost, and there is no other one yet
	StateAuthFailed = "auth_failed" // the servers refuse a credential
)

// States returns the values of Labels.State.
func States() []string {
	return []string{StateConnecting, StateConnected, StateSuspended, StateLost, StateAuthFailed}
}

// Buckets returns the boundaries, in seconds, that suit the histograms: from an uncontended acquire,
// a millisecond or two, to a long hold, an hour.
func Buckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
}

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
	SessionLosses: {"docent.session.losses", "{session}", "Sessions lost, closed or refused.", Counter,
		[]string{"cause"}},
	Reconnects:       {"docent.connection.reconnects", "{connection}", "Connections made again.", Counter, nil},
	PendingDeletions: {"docent.deletions.pending", "{deletion}", "Cleanups in the background.", UpDownCounter, nil},
	LocksHeld: {"docent.lock.held", "{lock}", "Locks held now.", GaugeSum,
		[]string{"recipe", "path"}},
	ClientStates: {"docent.client.state", "{client}", "Clients by the state of their connection.", GaugeSum,
		[]string{"state"}},
	SessionTimeout: {"docent.session.timeout", "s", "The shortest session timeout that the servers granted.",
		GaugeMin, nil},
	SessionRemaining: {"docent.session.remaining", "s",
		"Time until the session ends unless the ZooKeeper leader answers.", GaugeMin, nil},
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

// Unit returns "s" for durations, which gauges give in seconds too, and for numbers the counted thing
// in braces, as in UCUM.
func (i Instrument) Unit() string { return i.about().unit }

// Description returns a sentence that describes the measurement.
func (i Instrument) Description() string { return i.about().description }

// Kind returns how the measurements are combined.
func (i Instrument) Kind() Kind { return i.about().kind }

// Labels returns the names of the Labels fields that the measurements have, in lower case.
func (i Instrument) Labels() []string { return slices.Clone(i.about().labels) }
