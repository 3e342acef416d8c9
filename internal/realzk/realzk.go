// Package realzk decides whether tests may start the real ZooKeeper. The real one needs Java, so it
// is used only if the environment variable ZOOKEEPER asks for it, see package testzk.
package realzk

import (
	"os"
	"testing"
)

const variable = "ZOOKEEPER"

// Wanted returns the servers that the tests use. It is empty for servers that need only Go.
func Wanted() string { return os.Getenv(variable) }

// Need skips a test about the real server, unless a real server is wanted.
func Need(t testing.TB) {
	t.Helper()
	if Wanted() == "" {
		t.Skipf("needs the real ZooKeeper: set %s=1 to run it", variable)
	}
}
