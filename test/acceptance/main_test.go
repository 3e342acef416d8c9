package acceptance_test

import (
	"testing"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

// onlyInProcess skips what real servers cannot be made to do.
func onlyInProcess(t *testing.T, why string) {
	t.Helper()
	if realzk.Wanted() != "" {
		t.Skip("in-process only: " + why)
	}
}
