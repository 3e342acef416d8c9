package acceptance_test

import (
	"testing"
	"time"

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
