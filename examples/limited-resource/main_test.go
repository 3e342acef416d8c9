package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestEveryLockProtectsTheResource(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	run := newWorkload(flags).run
	require.NoError(t, flags.Parse(strings.Fields("-clients 3 -goroutines 4 -cycles 5")))
	var out bytes.Buffer
	require.NoError(t, run(testzk.Context(t), testzk.Connect(), &out))
	require.Regexp(t, `^mutex:           60 cycles, at most 1 inside at once, violations 0
rwlock:          60 cycles, at most \d+ inside at once, violations 0
semaphore:       60 cycles, at most [1-3] inside at once, violations 0
semaphore-mutex: 60 cycles, at most 1 inside at once, violations 0
multilock:       60 cycles, at most 1 inside at once, violations 0
$`, out.String())
}

// No access ends before all accesses that may share the resource are inside. A lock that excludes
// them would not pass.
func TestSharedAccessesAreInsideTogether(t *testing.T) {
	const readers = 6
	for _, k := range kinds() {
		want := map[string]int{"rwlock": readers, "semaphore": 3}[k.name]
		if want == 0 {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			full := func(r *resource) bool { return r.peak == want }
			w := workload{clients: 2, goroutines: 3, cycles: 1, kinds: []kind{sharedOnly(k)}, work: waitFor(full)}
			var out bytes.Buffer
			require.NoError(t, w.run(testzk.Context(t), testzk.Connect(), &out))
			require.Contains(t, out.String(), fmt.Sprintf(" 6 cycles, at most %d inside at once, violations 0\n", want))
		})
	}
}

// No access ends before an access has come in that a working lock would exclude.
func TestLockThatDoesNotExcludeIsDetected(t *testing.T) {
	var users atomic.Int64
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			locks := k.accesses
			k.accesses = func(c *framework.Client, path string) ([]access, error) {
				return locks(c, fmt.Sprintf("%s/of-user-%d", path, users.Add(1)))
			}
			violated := func(r *resource) bool { return len(r.violations) > 0 }
			w := workload{clients: 4, goroutines: 1, cycles: 1, kinds: []kind{k}, work: waitFor(violated)}
			var out bytes.Buffer
			require.ErrorContains(t, w.run(testzk.Context(t), testzk.Connect(), &out), k.name+" does not exclude: ")
			require.Regexp(t, `^`+k.name+`: +4 cycles, at most [2-4] inside at once, violations [1-3]\n$`, out.String())
		})
	}
}

// sharedOnly returns k without its exclusive accesses.
func sharedOnly(k kind) kind {
	all := k.accesses
	k.accesses = func(c *framework.Client, path string) ([]access, error) {
		list, err := all(c, path)
		return slices.DeleteFunc(list, func(a access) bool { return a.alone }), err
	}
	return k
}

// waitFor returns work that ends when cond is true.
func waitFor(cond func(*resource) bool) func(context.Context, *resource) error {
	return func(ctx context.Context, r *resource) error {
		for {
			r.mu.Lock()
			done := cond(r)
			r.mu.Unlock()
			if done {
				return nil
			}
			if err := work(ctx, r); err != nil {
				return err
			}
		}
	}
}

func TestNumbersMustBePositive(t *testing.T) {
	for _, w := range []workload{
		{clients: 0, goroutines: 1, cycles: 1},
		{clients: 1, goroutines: 0, cycles: 1},
		{clients: 1, goroutines: 1, cycles: -1},
	} {
		require.ErrorContains(t, w.run(t.Context(), testzk.Connect(), &bytes.Buffer{}), "must be 1 or more")
	}
}
