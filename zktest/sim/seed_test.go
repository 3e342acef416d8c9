package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// inChild is set in a process that a test starts to check its end.
const inChild = "ZKTEST_SIM_CHILD"

// enough is an upper bound for the lifetime of such a process.
const enough = 30 * time.Second

// inOwnProcess runs do in another process with the given variables, and returns that process's
// output. In the other process it does not return.
func inOwnProcess(t *testing.T, do func(), variables ...string) (output string, failed error) {
	t.Helper()
	if child := os.Getenv(inChild); child != "" { // the process of another test must not start further processes
		if child == t.Name() {
			do()
		}
		t.SkipNow()
	}
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	name, _, _ := strings.Cut(t.Name(), "/")
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+name+"$", "-test.v")
	variables = append([]string{sim.Seed + "=", sim.Seeds + "=", inChild + "=" + t.Name()}, variables...)
	child.Env = append(os.Environ(), variables...)
	out, err := child.CombinedOutput()
	require.NoError(t, ctx.Err(), "it does not end: %s", out)
	return string(out), err
}

func nothing(*testing.T, *zktest.Server, *rand.Rand) {}

func TestEnvironmentChoosesSeeds(t *testing.T) {
	if os.Getenv(inChild) != "" {
		sim.Run(t, 3, nothing)
		return
	}
	tests := map[string][]string{
		"":                                   {"1", "2", "3"},
		sim.Seeds + "=2":                     {"1", "2"},
		sim.Seeds + "=5":                     {"1", "2", "3", "4", "5"},
		sim.Seed + "=17":                     {"17"},
		sim.Seed + "=17 " + sim.Seeds + "=2": {"17"},
		sim.Seed + "=9223372036854775806":    {"9223372036854775806"},
	}
	for variables, want := range tests {
		out, err := inOwnProcess(t, nil, strings.Fields(variables)...)
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, passed(out), "%s: %s", variables, out)
	}
}

// passed returns the seeds that a process says it has run, in order.
func passed(out string) (seeds []string) {
	for _, m := range regexp.MustCompile(`=== RUN +\S+/seed=(\d+)`).FindAllStringSubmatch(out, -1) {
		seeds = append(seeds, m[1])
	}
	return seeds
}

func TestBadNumbersOfSeedsAreErrors(t *testing.T) {
	for variable, value := range map[string]string{sim.Seeds: "0", sim.Seed: "x"} {
		t.Run(variable, func(t *testing.T) {
			out, err := inOwnProcess(t, func() { sim.Run(t, 3, nothing) }, variable+"="+value)
			require.Error(t, err)
			require.Contains(t, out, "sim: "+variable+"="+value+": want a number from 1")
			require.Empty(t, passed(out))
		})
	}
	for _, n := range []int{0, -1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			out, err := inOwnProcess(t, func() { sim.Run(t, n, nothing) })
			require.Error(t, err)
			require.Contains(t, out, fmt.Sprintf("sim: %d seeds: want 1 or more", n))
		})
	}
}

// requireReport checks the output of a failed seed.
func requireReport(t *testing.T, out string) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	require.Contains(t, out, fmt.Sprintf("seed 2 failed; to run it again: %s=2 go test -run '^%s$'", sim.Seed, name))
	require.Contains(t, out, "create /seen by the test")
}

// inSeed2 returns a scenario that only fails with seed 2, which it recognizes by the seed's
// generator.
func inSeed2(goWrong func(*testing.T)) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		require.NoError(t, srv.Create("/seen", nil))
		if strings.HasSuffix(t.Name(), "seed=2") {
			goWrong(t)
		}
	}
}

func TestFailedSeedPrintsSeedAndTrace(t *testing.T) {
	out, err := inOwnProcess(t, func() { sim.Run(t, 3, inSeed2((*testing.T).Fail)) })
	require.Error(t, err)
	requireReport(t, out)
	require.Equal(t, 1, strings.Count(out, "to run it again"))
}

func TestPanicInAScenarioPrintsSeedAndTrace(t *testing.T) {
	out, err := inOwnProcess(t, func() { sim.Run(t, 3, inSeed2(func(*testing.T) { panic("oh no") })) })
	require.Error(t, err)
	require.Contains(t, out, "oh no")
	requireReport(t, out)
}

func TestScenarioThatHangsEnds(t *testing.T) {
	hangs := map[string]func(*testing.T){
		"waiting": func(*testing.T) { <-make(chan struct{}) },
		"spinning": func(*testing.T) {
			for {
				time.Sleep(time.Second)
			}
		},
	}
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			out, err := inOwnProcess(t, func() { sim.Run(t, 3, inSeed2(hang)) })
			require.Error(t, err)
			require.Contains(t, out, "hangs: ")
			requireReport(t, out)
		})
	}
}

// Repeat reports what depends on anything other than the seed.
func TestRepeatFindsWhatIsNotReproducible(t *testing.T) {
	out, err := inOwnProcess(t, func() {
		runs := 0
		sim.Repeat(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			runs++
			require.NoError(t, srv.Create(fmt.Sprintf("/run-%d", runs), nil))
		})
	})
	require.Error(t, err)
	require.Contains(t, out, "seed 1 is not reproducible:")
	require.Regexp(t, `first: .*create /run-1 .*\n\s*second: .*create /run-2 `, out)
}
