package ensemble

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

const parentEnv = "ENSEMBLE_TEST_PARENT"

func TestServersDieWithTheirParent(t *testing.T) {
	realzk.Need(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestParent$", "-test.v")
	parent.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.NotZero(t, pid, "the parent has started a server")
	eventually(t, "the server is gone", func() bool { return !runs(pid) })
}

// runs reports whether a process runs. It is false for a zombie: which process reaps an orphan, and
// when, depends on the system.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestParent is not a test but the process that TestServersDieWithTheirParent kills.
func TestParent(t *testing.T) {
	if os.Getenv(parentEnv) == "" {
		t.Skip("only runs as a child")
	}
	e, err := New(timeout(t), 1)
	require.NoError(t, err)
	p, _ := e.Servers()[0].current()
	require.NoError(t, syscall.Kill(p.os.Pid, 0))
	fmt.Printf("pid %d\n", p.os.Pid)
	<-timeout(t).Done() // until killed
}
