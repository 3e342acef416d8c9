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
	run := newAttack(flags).run
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

// To keep everybody out would not be hard. Here nobody leaves before all who may share the resource are inside.
func TestThoseWhoMayShareTheResourceAreInsideTogether(t *testing.T) {
	const readers = 6
	for _, k := range kinds() {
		want := map[string]int{"rwlock": readers, "semaphore": 3}[k.name]
		if want == 0 {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			a := attack{clients: 2, goroutines: 3, cycles: 1, kinds: []kind{sharing(k)}, work: waitFor(func(r *resource) bool {
				return r.peak == want
			})}
			var out bytes.Buffer
			require.NoError(t, a.run(testzk.Context(t), testzk.Connect(), &out))
			require.Contains(t, out.String(), fmt.Sprintf(" 6 cycles, at most %d inside at once, violations 0\n", want))
		})
	}
}

// Here nobody leaves before somebody has come in who must not be there.
func TestLockThatDoesNotLockIsFoundOut(t *testing.T) {
	var users atomic.Int64
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			locks := k.ways
			k.ways = func(c *framework.Client, path string) ([]way, error) {
				return locks(c, fmt.Sprintf("%s/of-user-%d", path, users.Add(1)))
			}
			a := attack{clients: 4, goroutines: 1, cycles: 1, kinds: []kind{k}, work: waitFor(func(r *resource) bool {
				return len(r.violations) > 0
			})}
			var out bytes.Buffer
			require.ErrorContains(t, a.run(testzk.Context(t), testzk.Connect(), &out), k.name+" does not exclude: ")
			require.Regexp(t, `^`+k.name+`: +4 cycles, at most [2-4] inside at once, violations [1-3]\n$`, out.String())
		})
	}
}

// sharing is a kind without those who are to be alone.
func sharing(k kind) kind {
	all := k.ways
	k.ways = func(c *framework.Client, path string) ([]way, error) {
		list, err := all(c, path)
		return slices.DeleteFunc(list, func(w way) bool { return w.alone }), err
	}
	return k
}

// waitFor is work that takes until the resource is as it should be.
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
	for _, a := range []attack{
		{clients: 0, goroutines: 1, cycles: 1},
		{clients: 1, goroutines: 0, cycles: 1},
		{clients: 1, goroutines: 1, cycles: -1},
	} {
		require.ErrorContains(t, a.run(t.Context(), testzk.Connect(), &bytes.Buffer{}), "must be 1 or more")
	}
}
