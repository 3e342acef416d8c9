package acceptance_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

// long returns a session timeout that does not expire on a machine that stands still for seconds.
func long() framework.Option { return framework.WithSessionTimeout(30 * time.Second) }

// onlyInProcess skips the test on real servers, which cannot be made to do what it needs.
func onlyInProcess(t *testing.T, why string) {
	t.Helper()
	if realzk.Wanted() != "" {
		t.Skip("in-process only: " + why)
	}
}

// often returns how many times a test repeats its steps: 1,000, or the number in the environment
// variable DOCENT_OFTEN. "make seeds" sets it and runs without the race detector.
func often(t *testing.T) int {
	t.Helper()
	value := os.Getenv("DOCENT_OFTEN")
	if value == "" {
		return 1000
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, "DOCENT_OFTEN")
	return n
}
