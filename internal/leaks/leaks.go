// Package leaks fails tests that leave goroutines running.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds the wait for goroutines that end. It is reached only if one of them never ends.
const patience = 60 * time.Second

// Main runs the tests of a package, and ends the process.
func Main(m *testing.M) { Exit(m.Run()) }

// Exit ends the process of tests with their exit status. It fails if they have passed, and goroutines are left
// running.
func Exit(code int) {
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find returns an error if goroutines are left running. It gives those that end time for that.
func Find() (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); { // goleak.Find waits for half a second
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
