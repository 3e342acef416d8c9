package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// Exit codes. Those between 64 and 78 are those of sysexits(3) that come closest.
const (
	exitFine         = 0
	exitUnhealthy    = 1 // of docent doctor
	exitUsage        = 64
	exitData         = 65
	exitNoNode       = 66
	exitNoServers    = 69
	exitFailed       = 70
	exitNotAcquired  = 75
	exitLost         = 76
	exitRefused      = 77
	exitNotStartable = 126
	exitNotFound     = 127
	exitSignal       = 128 // and the number of the signal
)

// exitCodes is the part of help texts about exit codes.
const exitCodes = `Exit codes:
  the command's, or 128 and the number of the signal that killed the command
  64   a wrong flag, argument or configuration file
  69   no server can be reached
  70   another failure, or the watchdog was killed
  75   the lock was not acquired (-n, -w), or asked for before the command was started
  76   the lock was lost, or about to be, before the command had ended
  77   the servers refuse the credentials or the permission
  126  the command cannot be started
  127  the command was not found
  128  and the number of a signal: it ended the wait`

// exitCodesOfReads is the part of help texts about exit codes of commands that use withClient.
const exitCodesOfReads = `Exit codes:
  64   a wrong flag, argument or configuration file
  66   there is no such node, or no client holds the lock
  69   no server can be reached
  70   another failure
  77   the servers refuse the credentials or the permission
  128  and the number of a signal that ended docent`

// exitCodesOfNumbers is the part of help texts about exit codes of commands that change numbers.
const exitCodesOfNumbers = `Exit codes:
  64   a wrong flag, argument or configuration file
  65   the data of the node is not such a number: nothing was written
  66   there is no such node
  69   no server can be reached
  70   another failure
  77   the servers refuse the credentials or the permission
  128  and the number of a signal that ended docent`

// usageError is an error in arguments, flags or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// signaled is the cause of the end of a wait that a signal has ended.
type signaled struct{ os.Signal }

func (s signaled) Error() string { return "ended by the signal " + s.String() }

// code returns the exit code for the signal.
func (s signaled) code() int {
	number, _ := s.Signal.(syscall.Signal)
	return exitSignal + int(number)
}

// codeOf returns the exit code for an error.
func codeOf(err error) int {
	var (
		usage  usageError
		own    coded
		signal signaled
	)
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &usage), errors.Is(err, semaphore.ErrLimit), errors.Is(err, framework.ErrInvalidPath):
		return exitUsage
	case errors.As(err, &signal):
		return signal.code()
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, framework.ErrAuthFailed):
		return exitRefused
	case errors.Is(err, zk.ErrNoNode):
		return exitNoNode
	case errors.Is(err, recipes.ErrNotAcquired):
		return exitNotAcquired
	case errors.Is(err, framework.ErrNotConnected):
		return exitNoServers
	}
	return exitFailed
}
