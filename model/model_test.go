//go:build model

package model

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Properties of the models, as the assertions of the models say them.
const (
	// The constants of the models are in the text as numbers.
	exclusion = "assertion violated (holders==0)"
	tokens    = "assertion violated ((token==255)||(own>token))"
	progress  = "assertion violated finished[k]"
	noOrphans = "assertion violated (seen[0]==0)"
	permits   = "assertion violated (hit<LIMIT)"
	nothing   = "" // no error: all properties hold
	witness   = "assertion violated (grants<CLIENTS)"
)

// check is one run of SPIN.
type check struct {
	name    string
	model   string
	defines string
	want    string // what is violated
}

func TestModel(t *testing.T) {
	runAll(t, slices.Concat(ofMutex, ofRWLock, ofSemaphore, ofMultilock), "-O1")
}

func TestSmallModel(t *testing.T) { runAll(t, small, "-O0") }

// runAll runs the checks. Without optimization a verifier is compiled in less time, and runs for longer.
func runAll(t *testing.T, checks []check, optimization string) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.model+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, optimization)
		})
	}
}

// run checks the model. Where no violation is wanted, all states within the bounds must have been
// visited. A violation must be the wanted one.
func (c check) run(t *testing.T, optimization string) {
	if c.want != nothing {
		optimization = "-O0" // a violation is found soon
	}
	v := c.verifier(t, "-DSAFETY", optimization)
	args := []string{"-m10000"}
	if strings.Contains(c.defines, "EXCLUSION_ONLY") {
		args = append(args, "-E") // a client may be stuck
	}
	out := v.search(args...)
	if c.want == nothing {
		requireComplete(t, out)
		return
	}
	values := strings.NewReplacer("CLIENTS", v.defined("CLIENTS", "2"), "LIMIT", v.defined("LIMIT", "1"))
	assert.Contains(t, out, values.Replace(c.want))
	t.Logf("the violation:\n%s", v.trail())
}

// TestNoRunIsEndless shows that every run ends. So that a client is never stuck at an end, as TestModel
// shows, means that each waiter is granted or gives up.
func TestNoRunIsEndless(t *testing.T) {
	for _, c := range endless {
		t.Run(c.model+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			requireComplete(t, c.verifier(t, "-DNP", "-O1").search("-m10000", "-l"))
		})
	}
}

func requireComplete(t *testing.T, out string) {
	t.Helper()
	require.Contains(t, out, "errors: 0")
	for _, incomplete := range []string{"Search not completed", "search depth too small", "out of memory"} {
		require.NotContains(t, out, incomplete)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "states, stored") || strings.Contains(line, "elapsed time") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// verifier is the program that SPIN makes of a model.
type verifier struct {
	check
	t   *testing.T
	dir string
}

// verifier compiles the model. It may take 4 GB of memory.
func (c check) verifier(t *testing.T, kind, optimization string) verifier {
	v := verifier{c, t, copyOfModels(t)}
	v.command("spin", append(strings.Fields(c.defines), "-a", c.model+".pml")...)
	require.FileExists(t, filepath.Join(v.dir, "pan.c"))
	v.command("gcc", optimization, "-w", kind, "-DCOLLAPSE", "-DNOFAIR", "-DMEMLIM=4000", "-DVECTORSZ=1024",
		"-o", "pan", "pan.c")
	return v
}

// copyOfModels returns a directory with the models, because each run of SPIN writes files.
func copyOfModels(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	models, err := filepath.Glob("*.pml")
	require.NoError(t, err)
	for _, name := range models {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// search visits all states, or those up to the first violation. It returns what the program prints.
func (v verifier) search(args ...string) string {
	out := v.command("./pan", args...)
	require.Contains(v.t, out, "states, stored")
	return out
}

// trail returns the steps to the violation.
func (v verifier) trail() string {
	out := v.command("spin", append(strings.Fields(v.defines), "-T", "-t", v.model+".pml")...)
	steps, _, _ := strings.Cut(out, "spin: trail ends")
	return steps
}

func (v verifier) command(name string, args ...string) string {
	v.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = v.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if _, ended := err.(*exec.ExitError); !ended { // SPIN's programs have their own exit codes
		require.NoError(v.t, err, "%s", out.String())
	}
	return out.String()
}

// defined returns what the run defines name as, or what the models define.
func (v verifier) defined(name, otherwise string) string {
	for _, d := range strings.Fields(v.defines) {
		if value, ok := strings.CutPrefix(d, "-D"+name+"="); ok {
			return value
		}
	}
	return otherwise
}
