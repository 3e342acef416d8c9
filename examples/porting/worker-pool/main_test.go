package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestProcessesKeepToOneLimit(t *testing.T) {
	path, dir := testzk.Path(t), t.TempDir()
	var pools []*workerPool
	for range 3 {
		pools = append(pools, parse(t, "-path", path, "-dir", dir, "-limit", "4", "-workers", "3", "-rounds", "5"))
	}
	out := runAll(t, pools)
	for i, p := range pools {
		require.LessOrEqual(t, p.peak, 4)
		require.Equal(t, fmt.Sprintf("user-%d has done 15 jobs, of at most %d at a time\n", i, p.peak), out[i].String())
	}
	require.Len(t, files(t, dir, "done"), 3*3*5)
	require.Empty(t, files(t, dir, "running"))
	testzk.Empty(t, path+"/leases")
	testzk.Empty(t, path+"/locks")
}

// No job ends before as many jobs run as the limit permits.
func TestAsManyJobsAsTheLimitRunAtTheSameTime(t *testing.T) {
	const limit = 4
	var jobs atomic.Int32
	full := make(chan struct{})
	var pools []*workerPool
	path, dir := testzk.Path(t), t.TempDir()
	for range 2 {
		p := parse(t, "-path", path, "-dir", dir, "-limit", fmt.Sprint(limit), "-workers", "2", "-rounds", "1")
		p.work = func(ctx context.Context) error {
			if jobs.Add(1) == limit {
				close(full)
			}
			select {
			case <-full:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		pools = append(pools, p)
	}
	runAll(t, pools)
	require.Equal(t, limit, max(pools[0].peak, pools[1].peak))
}

func TestTooManyJobsAreDetected(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "running"), 0o700))
	for _, job := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "running", job), nil, 0o600))
	}
	p := parse(t, "-path", testzk.Path(t), "-dir", dir, "-limit", "2", "-workers", "1")
	p.name = "c"
	err := p.run(testzk.Context(t), testzk.Connect(), &bytes.Buffer{})
	require.EqualError(t, err, "3 jobs at a time, not 2: [a b c-0-0]")
	require.Equal(t, []string{"a", "b"}, files(t, dir, "running"))
	require.Empty(t, files(t, dir, "done"))
}

func TestFirstErrorEndsAllWorkers(t *testing.T) {
	failed := errors.New("failed")
	var jobs atomic.Int32
	p := parse(t, "-path", testzk.Path(t), "-dir", t.TempDir())
	p.work = func(ctx context.Context) error {
		if jobs.Add(1) == 1 {
			return failed
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	require.ErrorIs(t, p.run(testzk.Context(t), testzk.Connect(), &bytes.Buffer{}), failed)
	require.Empty(t, files(t, p.dir, "running"))
}

func TestFolderIsRequired(t *testing.T) {
	require.EqualError(t, parse(t).run(t.Context(), testzk.Connect(), &bytes.Buffer{}), "-dir is missing")
}

func parse(t *testing.T, args ...string) *workerPool {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	p := newWorkerPool(flags)
	require.NoError(t, flags.Parse(args))
	return p
}

// runAll names all pools, runs them at the same time, and returns what they print.
func runAll(t *testing.T, pools []*workerPool) []bytes.Buffer {
	t.Helper()
	errs := make([]error, len(pools))
	out := make([]bytes.Buffer, len(pools))
	var all sync.WaitGroup
	for i, p := range pools {
		p.name = fmt.Sprintf("user-%d", i)
		all.Go(func() { errs[i] = p.run(testzk.Context(t), testzk.Connect(), &out[i]) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	return out
}

func files(t *testing.T, dir, name string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, name))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
