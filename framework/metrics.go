package framework

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Metrics receives measurements: give one to WithMetrics. Its methods are called on the paths that are measured: concurrently, and
// they must not block. There will be further instruments and labels; an adapter goes by Instruments, and passes on what it is given.
type Metrics interface {
	Add(i Instrument, n int64, l Labels)            // to a Counter, or to an UpDownCounter, where n may be negative
	Record(i Instrument, d time.Duration, l Labels) // in a Histogram
}

// Instrument is one thing that is measured. Instruments lists them.
type Instrument int

const (
	// LockWait is how long acquiring took, other than by re-entering, however it ended.
	LockWait Instrument = iota
	// LockHold is how long a lock was held, however that ended. All levels of one ownership are one hold.
	LockHold
	// LockWaiters is how many wait to acquire a lock right now.
	LockWaiters
	// LockLosses counts the holds that ended though nobody wanted it.
	LockLosses
	// SessionLosses counts the sessions that are over, and how often the servers begin to refuse a credential.
	SessionLosses
	// Reconnects counts the connections made again, with the same session or with a new one.
	Reconnects
	// JanitorBacklog is how many deletions are under way in the background, releases included.
	JanitorBacklog
)

// Kind is how the measurements of an Instrument add up.
type Kind int

const (
	// Counter only grows.
	Counter Kind = iota
	// UpDownCounter is a level, given by its changes: it is 0 again when all is over.
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

// Labels tell measurements of one Instrument apart. Those that an instrument does not have are empty.
type Labels struct {
	Recipe  string // the kind of lock: "mutex"
	Path    string // of the lock, as it was given to the recipe: there may be any number of them
	Outcome string // of acquiring: one of the Outcome constants
	Cause   string // of an end: one of the Cause constants
}

// What acquiring comes to.
const (
	OutcomeAcquired    = "acquired"
	OutcomeNotAcquired = "not_acquired" // because others were ahead
	OutcomeFailed      = "failed"
)

// Why a hold or a session ends.
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
	LockWait: {"docent.lock.wait", "s", "How long acquiring a lock took, however it ended.", Histogram,
		[]string{"recipe", "path", "outcome"}},
	LockHold: {"docent.lock.hold", "s", "How long a lock was held, however that ended.", Histogram,
		[]string{"recipe", "path", "cause"}},
	LockWaiters: {"docent.lock.waiters", "{waiter}", "Those who wait to acquire a lock.", UpDownCounter,
		[]string{"recipe", "path"}},
	LockLosses: {"docent.lock.losses", "{hold}", "Holds that ended though nobody wanted it.", Counter,
		[]string{"recipe", "path", "cause"}},
	SessionLosses:  {"docent.session.losses", "{session}", "Sessions that are over, or refused.", Counter, []string{"cause"}},
	Reconnects:     {"docent.connection.reconnects", "{connection}", "Connections made again.", Counter, nil},
	JanitorBacklog: {"docent.janitor.backlog", "{deletion}", "Deletions under way in the background.", UpDownCounter, nil},
}

// Instruments lists all there are.
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

// Name is such as "docent.lock.wait".
func (i Instrument) Name() string { return i.about().name }

// String is Name.
func (i Instrument) String() string { return i.Name() }

// Unit is "s" for durations, and otherwise what is counted, in braces, as in UCUM.
func (i Instrument) Unit() string { return i.about().unit }

// Description says in a sentence what is measured.
func (i Instrument) Description() string { return i.about().description }

// Kind is how the measurements add up.
func (i Instrument) Kind() Kind { return i.about().kind }

// Labels are the fields of Labels that measurements have, in lower case.
func (i Instrument) Labels() []string { return slices.Clone(i.about().labels) }

// WithMetrics sets where the client and the recipes on it tell what they measure. Default: nowhere. Curator: TracerDriver.
func WithMetrics(m Metrics) Option {
	return func(c *config) error {
		if m == nil {
			return fmt.Errorf("metrics are nil: leave the option out for none")
		}
		c.metrics = m
		return nil
	}
}

// unmeasured is the default.
type unmeasured struct{}

func (unmeasured) Add(Instrument, int64, Labels)            {}
func (unmeasured) Record(Instrument, time.Duration, Labels) {}

// Metrics is where measurements go, never nil. It is for recipes.
func (o ops) Metrics() Metrics {
	if o.core == nil {
		return unmeasured{}
	}
	return o.core.cfg.metrics
}

// errExpired is why a session is over of which the servers say so.
var errExpired = fmt.Errorf("%w: the servers do not know it any more", ErrSessionLost)

// lossCause names why a session is over.
func lossCause(reason error) string {
	switch {
	case errors.Is(reason, ErrClosed):
		return CauseClosed
	case errors.Is(reason, errExpired):
		return CauseExpired
	}
	return CauseDeadline
}

// measureState is a listener like any other.
func (c *core) measureState(change StateChange) {
	switch change.State {
	case Lost:
		if refusal(change.Cause) == nil { // which is counted once, whether or not there was a session before
			c.cfg.metrics.Add(SessionLosses, 1, Labels{Cause: lossCause(change.Cause)})
		}
	case AuthFailed:
		c.cfg.metrics.Add(SessionLosses, 1, Labels{Cause: CauseAuthFailed})
	case Reconnected:
		c.cfg.metrics.Add(Reconnects, 1, Labels{})
	}
}
