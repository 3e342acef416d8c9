package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// watchdogName is the name under which docent starts itself as a watchdog.
const watchdogName = "docent-watchdog"

// settings are the arguments of a watchdog.
type settings struct {
	orders, reports int // file descriptors
	group           int // the process group of the command; 0: one of its own
	path            string
	args            []string
}

func (s settings) arguments() []string {
	fixed := []string{watchdogName, strconv.Itoa(s.orders), strconv.Itoa(s.reports), strconv.Itoa(s.group), s.path}
	return append(fixed, s.args...)
}

// parseSettings reverses arguments.
func parseSettings(arguments []string) (s settings, ok bool) {
	const fixed = 5
	if len(arguments) <= fixed {
		return s, false
	}
	for i, number := range []*int{&s.orders, &s.reports, &s.group} {
		var err error
		if *number, err = strconv.Atoi(arguments[1+i]); err != nil {
			return s, false
		}
	}
	s.path, s.args = arguments[fixed-1], arguments[fixed:]
	return s, true
}

// order is what docent tells the watchdog. The end of the orders is the end of docent.
type order struct {
	Times  *times         `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"` // for the command
}

// report is what the watchdog tells docent.
type report struct {
	Warned bool               `json:",omitempty"` // the command was told to end
	Ended  bool               `json:",omitempty"` // all processes of the command have ended
	Killed bool               `json:",omitempty"` // the time to kill had come
	Status syscall.WaitStatus `json:",omitempty"` // how the command has ended
	Failed string             `json:",omitempty"` // why the command was not started
	Errno  syscall.Errno      `json:",omitempty"` // the error of the system, with Failed
}

// failure returns why the command was not started.
func (r report) failure() error {
	if r.Errno != 0 {
		return fmt.Errorf("%w: %w", ErrNotStarted, r.Errno)
	}
	return fmt.Errorf("%w: %s", ErrNotStarted, r.Failed)
}

// receive sends the values that it reads from a pipe to a channel, and closes the channel when the
// pipe ends. The caller reads the channel until then, or ends the process.
func receive[T any](pipe *os.File) <-chan T {
	values := make(chan T)
	go func() {
		defer close(values)
		decoder := json.NewDecoder(pipe)
		for {
			var value T
			if decoder.Decode(&value) != nil {
				return
			}
			values <- value
		}
	}()
	return values
}

// send writes a value to a pipe. An error means that the other process has ended, which the end of
// the other pipe reports.
func send(pipe *os.File, value any) { _ = json.NewEncoder(pipe).Encode(value) }
