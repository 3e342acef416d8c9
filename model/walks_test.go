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
	model   string
	name    string
	defines string
	walks   int
}{
	{"mutex", "broken connections", "-DCLIENTS=3 -DDROPS=4 -DLOSSES=0 -DDELETIONS=1", 12},
	{"mutex", "a client gives up", "-DCLIENTS=3 -DIMPATIENT=4 -DDROPS=2 -DLOSSES=0 -DDELETIONS=1", 8},
	{"mutex", "a lost session", "-DCLIENTS=3 -DIMPATIENT=1 -DDROPS=1 -DLOSSES=1 -DDELETIONS=1", 8},
	{"rwlock", "broken connections", "-DCLIENTS=3 -DDROPS=4 -DLOSSES=0 -DDELETIONS=1", 12},
	{"rwlock", "a writer becomes a reader", "-DCLIENTS=3 -DTURNFIRST -DDROPS=3 -DLOSSES=0 -DDELETIONS=1", 8},
	{"rwlock", "a client gives up", "-DCLIENTS=3 -DIMPATIENT=4 -DDROPS=2 -DLOSSES=0 -DDELETIONS=1", 8},
	{"rwlock", "a lost session", "-DCLIENTS=4 -DTURNFIRST -DIMPATIENT=1 -DDROPS=1 -DLOSSES=1 -DDELETIONS=1", 8},
	{"semaphore", "broken connections", "-DCLIENTS=3 -DDROPS=4 -DLOSSES=0 -DDELETIONS=1", 12},
	{"semaphore", "a client gives up", "-DCLIENTS=3 -DIMPATIENT=4 -DDROPS=2 -DLOSSES=0 -DDELETIONS=1", 8},
	{"semaphore", "a lost session", "-DCLIENTS=3 -DIMPATIENT=1 -DDROPS=1 -DLOSSES=1 -DDELETIONS=1", 8},
	{"multilock", "broken connections", "-DCLIENTS=3 -DDROPS=4 -DLOSSES=0", 12},
	{"multilock", "a client gives up", "-DCLIENTS=3 -DIMPATIENT=4 -DDROPS=2 -DLOSSES=0", 8},
	{"multilock", "a lost session", "-DCLIENTS=3 -DIMPATIENT=1 -DDROPS=1 -DLOSSES=1", 8},
}

// TestWalks replays walks that no run has made before. A walk that differs is printed: a file with it in
// testdata is replayed by TestSimulatedWalks.
func TestWalks(t *testing.T) {
	for _, kind := range walked {
		for range kind.walks {
			seed := 1 + rand.IntN(1e9)
			t.Run(fmt.Sprintf("%s/%s/seed=%d", kind.model, kind.name, seed), func(t *testing.T) {
				t.Parallel()
				args := []string{"-T", fmt.Sprintf("-n%d", seed), "-u100000", "-DWALK"}
				args = append(args, strings.Fields(kind.defines)...)
				spin := exec.Command("spin", append(args, kind.model+".pml")...)
				spin.Dir = copyOfModels(t)
				out, err := spin.CombinedOutput()
				require.NoError(t, err, "%s", out)
				text, _, ends := strings.Cut(string(out), "the end\n")
				require.True(t, ends, "the walk has no end:\n%s", out)
				text += "the end\n"
				defer func() {
					if t.Failed() {
						t.Logf("spin %s %s.pml\n%s", strings.Join(args, " "), kind.model, text)
					}
				}()
				replayWalk(t, recipeOf(t, kind.model), parseWalk(text))
			})
		}
	}
}
