//go:build model

package model

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walked are the runs of which walks are made, and how many of each.
var walked = []struct {
	name    string
	defines string
	walks   int
}{
	{"broken connections", "-DCLIENTS=3 -DDROPS=4 -DLOSSES=0 -DDELETIONS=1", 12},
	{"a client gives up", "-DCLIENTS=3 -DIMPATIENT=4 -DDROPS=2 -DLOSSES=0 -DDELETIONS=1", 8},
	{"a lost session", "-DCLIENTS=3 -DIMPATIENT=1 -DDROPS=1 -DLOSSES=1 -DDELETIONS=1", 8},
}

// TestWalks replays walks that no run has made before. A walk that differs is printed: a file with it in
// testdata is replayed by TestRecordedWalks.
func TestWalks(t *testing.T) {
	for _, kind := range walked {
		for range kind.walks {
			seed := 1 + rand.IntN(1e9)
			t.Run(fmt.Sprintf("mutex/%s/seed=%d", kind.name, seed), func(t *testing.T) {
				t.Parallel()
				args := []string{"-T", fmt.Sprintf("-n%d", seed), "-u100000", "-DWALK"}
				args = append(args, strings.Fields(kind.defines)...)
				spin := exec.Command("spin", append(args, "mutex.pml")...)
				spin.Dir = copyOfModels(t)
				out, err := spin.CombinedOutput()
				require.NoError(t, err, "%s", out)
				text, _, ends := strings.Cut(string(out), "the end\n")
				require.True(t, ends, "the walk has no end:\n%s", out)
				text += "the end\n"
				defer func() {
					if t.Failed() {
						t.Logf("spin %s mutex.pml\n%s", strings.Join(args, " "), text)
					}
				}()
				replayWalk(t, parseWalk(text))
			})
		}
	}
}
