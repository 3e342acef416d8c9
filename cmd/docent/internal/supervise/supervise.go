// Package supervise runs a command under a hold, and ends the command before the hold ends.
//
// On Linux two processes look after the command: docent, which has the session with the servers,
// and the watchdog, which is the parent of the command and knows only a deadline. docent tells the
// watchdog each new deadline over a pipe. The watchdog ends the command when the deadline is near,
// or when the pipe breaks. So the command ends in time also if docent is paused or killed. docent
// ends the command if the watchdog does not, and the kernel kills it if the watchdog is killed.
//
// On other systems docent runs the command itself. It ends the command in time only while docent
// itself runs.
package supervise

import (
	"errors"
	"math"
	"os"
	"slices"
	"time"
)

// Hold is what bounds the command: a recipes.Hold or a leader.Term.
type Hold interface {
	// Done returns a channel that is closed when the hold ends.
	Done() <-chan struct{}
	// ValidUntil returns the deadline of the hold, or the zero Time if the hold has ended.
	ValidUntil() time.Time
}

// Command is a command to run. Standard input, output and error are those of this process, and so
// are all other files that its parent has passed to it.
type Command struct {
	Path string   // of the executable file
	Args []string // with the name of the command
	Env  []string
}

// Limits are the times before the deadline of a hold.
type Limits struct {
	Grace    time.Duration // from SIGTERM to SIGKILL
	Margin   time.Duration // from SIGKILL to the deadline
	Interval time.Duration // between looks at the deadline
}

// Parts of the session timeout.
const (
	graceFraction    = 6  // the default; a client may be without an answer for a quarter of the timeout
	leastFraction    = 3  // a longer grace would begin while answers come in time
	marginFraction   = 20 // what it may take to kill all processes of a command
	intervalFraction = 50
)

// LimitsFor returns the limits for a session timeout. A grace of 0 stands for the default.
func LimitsFor(timeout, grace time.Duration) Limits {
	if grace == 0 {
		grace = timeout / graceFraction
	}
	return Limits{Grace: grace, Margin: timeout / marginFraction, Interval: timeout / intervalFraction}
}

// LongestGrace returns the longest grace for a session timeout. With a longer one, a command could
// be told to end although all answers of the servers come in time.
func LongestGrace(timeout time.Duration) time.Duration { return timeout / leastFraction }

// Request is a request to release the hold, and what Run does then. The hold is not released before the
// command has ended.
type Request struct {
	Asked  <-chan struct{} // closed when the release is asked for; nil: never
	What   string          // is asked for, in words
	Answer Answer
}

// Answer is what Run does when the release of the hold is asked for.
type Answer string

// The answers.
const (
	Ignore Answer = "ignore" // the command goes on
	Term   Answer = "term"   // all its processes get SIGTERM, and as much time to end as they need
	Kill   Answer = "kill"   // they get SIGTERM, and SIGKILL after the grace
)

// Ending is how a command has ended.
type Ending struct {
	Code  int  // the exit code, or 128 and the number of the signal that has killed the command
	Cut   bool // it was told to end, or killed, because the hold was about to end or had ended
	Asked bool // it was told to end before, because of a Request
}

// times are the moments at which the command ends, unless they are moved.
type times struct {
	Warn moment        // SIGTERM
	Kill moment        // SIGKILL
	Rest time.Duration // what the command may leave running for, at most, after its end

	Ask   moment // SIGTERM because of a Request
	Force moment // SIGKILL because of a Request
}

// never are the times before the first deadline is known.
var never = times{Warn: math.MaxInt64, Kill: math.MaxInt64, Ask: math.MaxInt64, Force: math.MaxInt64}

// timesOf returns the times for a hold. before are the former ones.
func (l Limits) timesOf(hold Hold, before times) times {
	at := now() // first: a pause after it makes the times earlier
	next := before
	until := hold.ValidUntil()
	if until.IsZero() {
		next.Warn, next.Kill, next.Rest = min(at, before.Warn), min(at, before.Kill), 0
		return next
	}
	deadline := at.add(time.Until(until))
	next.Warn, next.Kill, next.Rest = deadline.add(-l.Margin-l.Grace), deadline.add(-l.Margin), l.Grace
	return next
}

// timesAsked returns the times after a Request. before are the former ones.
func (l Limits) timesAsked(answer Answer, before times) times {
	next := before
	switch at := now(); answer {
	case Kill:
		next.Force = at.add(l.Grace)
		fallthrough
	case Term:
		next.Ask = at
	}
	return next
}

// message returns what a user should know about the request.
func (r Request) message() string {
	if r.Answer == Ignore {
		return "another client has asked for " + r.What + ": the command goes on"
	}
	return "another client has asked for " + r.What + ": told the command to end"
}

// moment is a time in nanoseconds of a clock that all processes of the machine share. It runs while
// the machine is suspended, if the system has such a clock.
type moment int64

func (m moment) add(d time.Duration) moment       { return m + moment(d) }
func (m moment) until(other moment) time.Duration { return time.Duration(other - m) }
func (m moment) passed(other moment) bool         { return other <= m }

// longestSleep bounds each sleep until a moment. Timers may stand still while a machine is
// suspended. So the end of a suspension is noticed after this time at most.
const longestSleep = 250 * time.Millisecond

// sleepUntil returns for how long to sleep before looking at the clock again.
func sleepUntil(m moment) time.Duration { return min(max(0, now().until(m)), longestSleep) }

// Ends reports whether a signal ends a program that does not catch it.
func Ends(s os.Signal) bool { return slices.Contains(endings, s) }

// killedCode is the exit code of a command that was killed.
const killedCode = 128 + 9

var (
	// ErrWatchdog means that the watchdog of a command was killed, and so the command.
	ErrWatchdog = errors.New("the watchdog was killed, and the command with it")
	// ErrNotStarted means that a command cannot be started. The error has that of the system, too.
	ErrNotStarted = errors.New("cannot start the command")
)
