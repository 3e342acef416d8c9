package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// siegeProcess is a worker with relays of its own to the servers.
type siegeProcess struct {
	*process
	settings
	number int
	random *rand.Rand // of the seeds of its processes
	relays []*relay   // to each server

	starting sync.Mutex // while the process is replaced or gets a signal
	killing  sync.Mutex // from a kill to the next start
	pausing  sync.Mutex // while a fault has stopped the process
	killed   bool       // by a fault

	states []string          // of the client, as told
	closed map[string]string // the errors of what was closed, by kind
	turns  []turn            // the others
	before []turn            // of earlier processes, which were killed

	ordered   bool   // the worker keeps what it is told to keep
	data      string // that it was told to keep last
	keepsNone bool   // it was told to close everything
}

func newSiegeProcess(servers *network, e *ensemble.Ensemble, number int, seed uint64) *siegeProcess {
	w := &siegeProcess{number: number, random: randomOf(seed), closed: map[string]string{}}
	for _, server := range e.Servers() {
		w.relays = append(w.relays, servers.relay(server.Addr()))
	}
	return w
}

// start starts the process, or another one in its place.
func (w *siegeProcess) start(t *testing.T, record *recorder, role string, s settings) {
	var connect []string
	for _, relay := range w.relays {
		connect = append(connect, relay.addr())
	}
	s.Number = w.number
	s.Name = fmt.Sprintf("w%d", w.number)
	s.Log = filepath.Join(record.dir, fmt.Sprintf("worker-%d.log", w.number))
	w.starting.Lock()
	defer w.starting.Unlock()
	s.Seed = w.random.Uint64()
	if w.process != nil {
		w.before = append(append(w.before, w.process.take()...), turn{Kind: kindKilled})
	}
	w.settings, w.turns, w.killed = s, nil, false
	w.ordered, w.data, w.keepsNone = role == "follow", s.Data, false
	w.process = startProcessWith(t, role, strings.Join(connect, ","), s)
	record.note("worker %d is process %d", w.number, w.cmd.Process.Pid)
}

// watches reports whether the worker has persistent watches on the paths of locks.
func (w *siegeProcess) watches() bool { return !w.ordered && !w.Older }

// signal sends a signal to the process. It reports false if the process has ended.
func (w *siegeProcess) signal(signal syscall.Signal) bool {
	w.starting.Lock()
	defer w.starting.Unlock()
	return !w.hasEnded() && w.cmd.Process.Signal(signal) == nil
}

func (w *siegeProcess) stop() bool { return w.signal(syscall.SIGSTOP) }
func (w *siegeProcess) cont()      { w.signal(syscall.SIGCONT) } // not if it was killed meanwhile

// hasEnded reports whether the process has ended, and all that it said has been read.
func (w *siegeProcess) hasEnded() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// lives returns an error if the process has ended by itself, as after a panic or a data race.
func (w *siegeProcess) lives() error {
	w.starting.Lock()
	defer w.starting.Unlock()
	return errorUnless(w.killed || !w.hasEnded(), "worker %d has ended by itself", w.number)
}

// collect returns what the worker has said since the last call, also before it was killed.
func (w *siegeProcess) collect() (turns []turn) {
	w.starting.Lock()
	defer w.starting.Unlock()
	turns, w.before = append(w.before, w.take()...), nil
	return turns
}

// wrong returns the errors that processes have told which were killed.
func (w *siegeProcess) wrong() (err error) {
	w.starting.Lock()
	defer w.starting.Unlock()
	for _, t := range w.before {
		err = errors.Join(err, errorUnless(t.Kind != kindError, "an error that no fault explains: %+v", t))
	}
	w.before = nil
	return err
}

// kill ends the process at once. It returns an error if the process has ended by itself before.
func (w *siegeProcess) kill() error {
	if err := w.lives(); err != nil {
		return err
	}
	w.starting.Lock()
	w.killed = true
	w.starting.Unlock()
	w.signal(syscall.SIGKILL)
	<-w.done
	return nil
}

// set has the worker keep other data.
func (w *siegeProcess) set(data string) {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.data = data
	_ = w.order(orderSet + data) // not if it was killed
}

// close has the worker close what it keeps.
func (w *siegeProcess) close() {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.keepsNone = true
	_ = w.order(orderClose) // not if it was killed
}

// used waits for the relay of the worker's connection.
func (w *siegeProcess) used(t *testing.T) (found *relay) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		i := slices.IndexFunc(w.relays, func(relay *relay) bool { return relay.down.used() })
		if i >= 0 {
			found = w.relays[i]
		}
		return i >= 0
	}, "the worker has no connection")
	return found
}

// hear takes what the worker has said, and notes the states and the closed nodes.
func (w *siegeProcess) hear() {
	for _, t := range w.take() {
		switch t.Kind {
		case kindState:
			w.states = append(w.states, t.Lock)
		case kindClosed:
			w.closed[t.Lock] = t.Release
		default:
			w.turns = append(w.turns, t)
		}
	}
}

// shown waits until the worker has told all that it was asked for, and returns it.
func (w *siegeProcess) shown(t *testing.T) (turns []turn) {
	t.Helper()
	eventually(t, func() bool {
		w.hear()
		return len(w.turns) > 0 && w.turns[len(w.turns)-1].Kind == kindShown
	}, func() string { return fmt.Sprintf("worker %d does not tell what it follows", w.number) })
	turns, w.turns = w.turns, nil
	return turns
}

// forgetStates forgets the states that the worker's client has had.
func (w *siegeProcess) forgetStates() {
	w.hear()
	w.states = nil
}

// awaitState waits until the worker's client has had a state since the last call of forgetStates.
func (w *siegeProcess) awaitState(t *testing.T, state string) {
	t.Helper()
	eventually(t, func() bool {
		w.hear()
		return slices.Contains(w.states, state)
	}, func() string { return fmt.Sprintf("worker %d: want state %q, had %q", w.number, state, w.states) })
}

// checkClosed waits until the worker has closed all that it kept.
func (w *siegeProcess) checkClosed(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		w.hear()
		return len(w.closed) == len(keptKinds)
	}, func() string { return fmt.Sprintf("worker %d does not close its nodes: %v", w.number, w.closed) })
	for kind, err := range w.closed {
		if err != "" { // the deletion goes on
			require.Contains(t, err, pending(kind).Error(), "worker %d: close %s", w.number, kind)
		}
	}
}

func TestWorkerThatEndsByItselfIsFound(t *testing.T) {
	ended := make(chan struct{})
	w := &siegeProcess{number: 3, process: &process{done: ended}}
	require.NoError(t, w.lives())
	close(ended)
	require.ErrorContains(t, w.lives(), "worker 3 has ended by itself")
	require.ErrorContains(t, w.kill(), "worker 3 has ended by itself")
	w.killed = true
	require.NoError(t, w.lives())
}

// eventually waits for a condition that must be true soon after faults.
func eventually(t *testing.T, cond func() bool, why func() string) {
	t.Helper()
	for deadline := time.Now().Add(recoveryBound); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, why())
		}
	}
}
