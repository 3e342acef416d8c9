// Package realzk tells tests whether they may start the real ZooKeeper. It needs Java, so that it has to be asked for: by the
// environment variable ZOOKEEPER, see package testzk.
package realzk

import (
	"os"
	"testing"
)

const variable = "ZOOKEEPER"

// Wanted is which servers the tests are to use; empty for those that need nothing but Go.
func Wanted() string { return os.Getenv(variable) }

// Need skips a test that shows something of the real server, unless the real one is wanted.
func Need(t testing.TB) {
	t.Helper()
	if Wanted() == "" {
		t.Skipf("needs the real ZooKeeper: set %s=1 to run it", variable)
	}
}
