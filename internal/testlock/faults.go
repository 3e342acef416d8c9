package testlock

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// Aim is the list of request types at which the faults of a simulation are aimed. It counts the
// faults of all seeds.
type Aim struct {
	t   testing.TB
	ops []fault.Op

	mu     sync.Mutex
	sent   fault.Counts // by all clients
	faults int          // at requests
}

// enough is the number of faults at requests, for each type, from which on the aim is checked.
const enough = 10

// NewAim returns the aim of all seeds of a test. The test fails at its end if no client has sent a
// request of one of the types. After few faults nothing is checked.
func NewAim(t testing.TB, ops ...fault.Op) *Aim {
	a := &Aim{t: t, ops: ops, sent: fault.Counts{}}
	t.Cleanup(a.check)
	return a
}

func (a *Aim) check() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faults < enough*len(a.ops) {
		return
	}
	for _, op := range a.ops {
		if a.sent[op] == 0 && op != fault.AnyOp && op != fault.OpConnect {
			a.t.Errorf("faults are aimed at %v requests, and no client sends them", op)
		}
	}
}

// add adds what happened in one run.
func (a *Aim) add(sent fault.Counts, faults int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for op, n := range sent {
		a.sent[op] += n
	}
	a.faults += faults
}

// Faults makes random faults in one run of a simulation.
type Faults struct {
	aim     *Aim
	srv     *zktest.Server
	random  *rand.Rand
	timeout time.Duration
	rules   int // number of faults at requests
}

// Faults returns the faults of one run, which ends with t. timeout is the session timeout of the
// clients.
func (a *Aim) Faults(t testing.TB, srv *zktest.Server, random *rand.Rand, timeout time.Duration) *Faults {
	f := &Faults{aim: a, srv: srv, random: random, timeout: timeout}
	t.Cleanup(func() { a.add(srv.Requests(), f.rules) })
	return f
}

// Strike applies a random fault to the connection or the requests of a client. The fault ends by
// itself, some of them after the session. Strike returns how long the fault lasts if it depends on
// time alone.
func (f *Faults) Strike(c *zktest.Client) (lasts time.Duration) {
	switch f.random.IntN(12) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2, 3:
		f.onRequest(c, fault.DropBefore())
	case 4, 5:
		f.onRequest(c, fault.DropAfter())
	case 6:
		f.onRequest(c, fault.Delay(f.upTo(f.timeout)))
	case 7:
		c.HoldEvents()
		return f.later(f.timeout, c.ReleaseEvents)
	case 8:
		c.Cut()
		return f.later(2*f.timeout, c.Heal)
	case 9:
		[]func(){c.CutReplies, c.CutRequests}[f.random.IntN(2)]()
		return f.later(2*f.timeout, c.Heal)
	case 10:
		c.Freeze()
		return f.later(2*f.timeout, c.Thaw)
	case 11:
		c.Refuse(true)
		c.Drop()
		return f.later(2*f.timeout, func() { c.Refuse(false) })
	}
	return 0
}

// Harm makes a random fault: the sessions of c expire, a node in one of the directories is deleted
// or has other data, or Strike.
func (f *Faults) Harm(c *zktest.Client, m *Model, directories ...string) {
	switch n := f.random.IntN(8); {
	case n == 0:
		m.Expire(c)
	case n == 1 && len(directories) > 0:
		m.DeleteNode(f.random, directories...)
	case n == 2 && len(directories) > 0:
		m.ChangeNode(f.random, directories...)
	default:
		f.Strike(c)
	}
}

// onRequest applies an action to one of the next requests of a type that the client has sent
// before, or makes the client reconnect and applies the action to a request of the reconnect.
func (f *Faults) onRequest(c *zktest.Client, action fault.Action) {
	sent := c.Requests()
	seen := slices.DeleteFunc(slices.Clone(f.aim.ops), func(op fault.Op) bool {
		return sent[op] == 0 && op != fault.AnyOp && !ofReconnects(op)
	})
	if len(seen) == 0 {
		seen = []fault.Op{fault.AnyOp}
	}
	op := seen[f.random.IntN(len(seen))]
	match := fault.Match{Client: c.Name(), Op: op, Skip: f.random.IntN(2)}
	if ofReconnects(op) {
		match.Skip = 0
	}
	f.rules++
	f.srv.On(match, action)
	if ofReconnects(op) {
		c.Drop()
	}
}

func ofReconnects(op fault.Op) bool {
	return op == fault.OpConnect || op == fault.OpSetWatches || op == fault.OpSetWatches2
}

// later calls undo after a random time and returns that time.
func (f *Faults) later(most time.Duration, undo func()) time.Duration {
	d := f.upTo(most)
	time.AfterFunc(d, undo)
	return d
}

// HoldTime returns how long a contender keeps a hold: mostly less than a second, and sometimes long
// enough to lose the session.
func HoldTime(random *rand.Rand, timeout time.Duration) time.Duration {
	most := time.Second
	if random.IntN(4) == 0 {
		most = 2 * timeout
	}
	return time.Duration(random.Int64N(int64(most)))
}

func (f *Faults) upTo(most time.Duration) time.Duration {
	return time.Duration(f.random.Int64N(int64(most)))
}
