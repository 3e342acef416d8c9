//go:build !unix

package supervise

import (
	"os"
	"os/signal"
)

// endings are the signals that end a program which does not catch them.
var endings = []os.Signal{os.Interrupt}

// Catch lets c receive the signals that end a program. They reach the command by themselves.
func Catch(c chan<- os.Signal) { signal.Notify(c, endings...) }

// EndByInterrupt does nothing: the system has no such signal.
func EndByInterrupt() {}
