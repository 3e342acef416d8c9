package testzk

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework/metrics"
)

// Trap ends, once it is set, the next goroutine that calls Spring: by a panic or, as testing.T.FailNow does, by
// runtime.Goexit.
type Trap struct {
	Goexit bool
	set    atomic.Bool
}

// Set sets the trap.
func (t *Trap) Set() { t.set.Store(true) }

// IsSet reports whether the trap is set and has not been sprung.
func (t *Trap) IsSet() bool { return t.set.Load() }

// Spring ends the goroutine if the trap is set.
func (t *Trap) Spring() {
	switch {
	case !t.set.CompareAndSwap(true, false):
	case t.Goexit:
		runtime.Goexit()
	default:
		panic("trap")
	}
}

// Sprung calls fn on a goroutine of its own, which a trap must end. The channel is closed when it has ended.
func Sprung(t testing.TB, fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		fn()
		t.Errorf("no trap has ended the call")
	}()
	return done
}

// EndAcquires has the metrics of a client end its acquires of a lock of another service, while another client has the
// lock and when it has released it. The lock must be free afterwards. connect returns the acquire of a client with
// metrics.
func EndAcquires[H interface{ Release() error }](
	t *testing.T, other func() (H, error), connect func(metrics.Metrics) func() (H, error),
) {
	free := func(when string) H {
		hold, err := other()
		require.NoError(t, err, when)
		return hold
	}
	for name, at := range map[string]struct {
		instrument metrics.Instrument
		n          int64
	}{
		"the wait begins":       {metrics.LockWaiters, 1},
		"the wait ends":         {metrics.LockWaiters, -1},
		"the acquire has ended": {metrics.LockWait, 0},
	} {
		for _, goexit := range []bool{false, true} {
			trap := &Trap{Goexit: goexit}
			m := NewCalling(at.instrument, at.n, trap.Spring)
			acquire := connect(m)
			hold := free("before")
			trap.Set()
			ended := Sprung(t, func() { _, _ = acquire() })
			Eventually(t, func() bool { return !trap.IsSet() || m.waiting() }, "the acquire does not wait")
			require.NoError(t, hold.Release())
			Closes(t, ended, "the acquire does not end")
			require.False(t, trap.IsSet(), name)
			require.NoError(t, free(name).Release())
		}
	}
}

// waiting reports whether an acquire waits.
func (m *Metrics) waiting() bool {
	for _, line := range m.Lines(time.Second) {
		if strings.HasPrefix(line, metrics.LockWaiters.Name()+"{") && strings.HasSuffix(line, " 1") {
			return true
		}
	}
	return false
}
