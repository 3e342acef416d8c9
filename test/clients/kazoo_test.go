package clients

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

func TestKazoo(t *testing.T) {
	realzk.Need(t)
	python := findPython(t)
	onEach(t, func(t *testing.T, c *control) transcript {
		return runScript(t, c, python, "-B", "kazoo/script.py")
	})
}

// findPython finds a Python that has kazoo. Debian's packages belong to Debian's Python, which need not be the first in PATH.
func findPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if err := exec.Command(python, "-c", "import kazoo.client").Run(); err == nil {
			return python
		}
	}
	require.FailNow(t, "no python3 has kazoo: "+install("python3-kazoo"))
	return ""
}
