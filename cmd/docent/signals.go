package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/docent-zk/docent/cmd/docent/internal/supervise"
)

// relay receives the signals of this process. While a command runs it passes them on. At other times
// a signal that ends programs ends the context of the relay.
type relay struct {
	caught chan os.Signal
	done   chan struct{}

	mu      sync.Mutex
	end     context.CancelCauseFunc
	command chan os.Signal // nil: no command runs
	stopped bool           // a signal that was passed on asks programs to stop
}

// signals is how many signals wait for a command that is being started. Further ones are dropped,
// as the kernel drops signals that are pending already.
const signals = 64

// stops are the signals that ask a program to stop, and nothing else.
var stops = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}

// startRelay starts to receive signals. stop ends that.
func startRelay(ctx context.Context) (r *relay, relayed context.Context, stop func()) {
	relayed, end := context.WithCancelCause(ctx)
	r = &relay{caught: make(chan os.Signal, signals), done: make(chan struct{}), end: end}
	supervise.Catch(r.caught)
	go r.run()
	return r, relayed, func() {
		signal.Stop(r.caught)
		close(r.caught)
		<-r.done
		end(nil)
	}
}

func (r *relay) run() {
	defer close(r.done)
	for s := range r.caught {
		r.pass(s)
	}
}

func (r *relay) pass(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command == nil {
		if supervise.Ends(s) {
			r.end(signaled{s})
		}
		return
	}
	if slices.Contains(stops, s) {
		r.stopped = true
	}
	select {
	case r.command <- s:
	default:
	}
}

// begin returns a channel of the signals for a command, until finish.
func (r *relay) begin() <-chan os.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command = make(chan os.Signal, signals)
	return r.command
}

// finish ends what begin has begun. It reports whether a signal has asked the command to stop.
func (r *relay) finish() (stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command = nil
	return r.stopped
}
