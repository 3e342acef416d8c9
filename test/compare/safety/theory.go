package safety

import (
	"fmt"
	"slices"

	"github.com/docent-zk/docent/test/compare/peer"
)

// Verdict is what theory says of lost updates, or of a lock that does not become free.
type Verdict int

const (
	May Verdict = iota
	Never
	Must // the fault is aimed, so it happens in each run
)

func (v Verdict) String() string { return [...]string{"may", "never", "must"}[v] }

// Expected is what theory says of a row: of lost updates in each kind of resource, and of a lock that does
// not become free.
type Expected struct{ Plain, Token, Guard, Stuck Verdict }

// Theory returns what theory says of a kind of lock under a fault. A lock of which it says nothing is one
// of another project that depends on time.
func Theory(k peer.Kind, f Fault) Expected {
	e := Expected{Plain: May, Token: Never, Guard: Never}
	switch {
	case is(f, fatal[k.Name]):
		e.Plain = Must
	case is(f, safe[k.Name]):
		e.Plain = Never
	case f == PauseLate && !is(k.Name, connections):
		e.Plain = Must // nothing but the resource can refuse the write
	}
	if k.Name == "redislock" && (f == Wipe || f == Failover) {
		e.Token = May // the counter may be lost with the lock
	}
	if k.Name == "setnx-expire" && f == KillAcquire {
		e.Stuck = Must
	}
	return e
}

func is[T comparable](one T, all []T) bool { return slices.Contains(all, one) }

var (
	// connections are the locks that a program has as long as its connection is there, however long it is
	// silent.
	connections = []string{"sqltx-pg", "sqltx-maria", "advisory-pg", "getlock-maria"}

	// The lock of one server that keeps time and has its data.
	ordinary = []Fault{Pause, Overrun, Kill, KillAcquire, Partition, WaiterDies, Restart}
	// The lock of servers that agree by a majority, and measure spans.
	agreed = append(slices.Clone(ordinary), Failover, ServerClock)
	// The lock of a connection: it does not become free while the program is paused.
	connected = []Fault{Pause, PauseLate, Overrun, Kill, KillAcquire, WaiterDies, ServerClock}
	// The lock of a connection that the server ends after a lease without a request.
	attended = []Fault{Pause, Overrun, Kill, KillAcquire, Partition, WaiterDies}

	// safe are the faults under which a resource that compares nothing loses no update.
	safe = map[string][]Fault{
		"docent": agreed, "etcdlock": agreed,
		"redislock": ordinary, "redislock-5": ordinary,
		"sqllock-pg": ordinary, "sqllock-maria": ordinary, "keylock-pg": ordinary,
		"session-pg": attended, "session-maria": attended,
		"sqltx-pg": connected, "sqltx-maria": connected, "advisory-pg": connected, "getlock-maria": connected,
	}
	// fatal are the faults under which a lock that is built by hand has to lose one.
	fatal = map[string][]Fault{
		"setnx-getset": {Pause, PauseLate, Overrun, Partition, ClockAhead, Wipe, Failover, Delete},
		"setnx-expire": {Pause, PauseLate, Overrun, Partition, Wipe, Failover, ServerClock, Delete},
		"zk-node":      {Pause, PauseLate, Partition, Delete},
		"zk-queue":     {Pause, PauseLate, Partition, WaiterDies, Delete},
	}
)

// Check returns how a row contradicts theory.
func Check(row Row) []error { return append(contradicts(row, Never), contradicts(row, Must)...) }

// contradicts returns how a row contradicts one verdict of theory.
func contradicts(row Row, verdict Verdict) (errs []error) {
	k, ok := peer.Find(row.Kind)
	if !ok || row.Reason != "" {
		return nil
	}
	e := Theory(k, row.Fault)
	stuck := 0
	if row.Stuck {
		stuck = 1
	}
	for _, c := range []struct {
		what    string
		got     *int
		verdict Verdict
	}{{"lost without a token", row.Plain, e.Plain}, {"lost with the token", row.Token, e.Token},
		{"lost in the service", row.Guard, e.Guard}, {"stuck", &stuck, e.Stuck}} {
		if c.got != nil && c.verdict == verdict && (*c.got > 0) == (verdict == Never) {
			errs = append(errs, fmt.Errorf("%s, %s: %s: %d, theory says %v", row.Kind, row.Fault, c.what, *c.got,
				c.verdict))
		}
	}
	return errs
}
