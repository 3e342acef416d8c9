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

// long is a session timeout that is not in the way on a machine that stands still for seconds.
func long() framework.Option { return framework.WithSessionTimeout(30 * time.Second) }

// onlyInProcess skips what real servers cannot be made to do.
func onlyInProcess(t *testing.T, why string) {
	t.Helper()
	if realzk.Wanted() != "" {
		t.Skip("in-process only: " + why)
	}
}

// often is how many times tests do something that had better be done very often: 1,000, or as many as the environment variable
// DOCENT_OFTEN says, as make seeds does, without the race detector.
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
