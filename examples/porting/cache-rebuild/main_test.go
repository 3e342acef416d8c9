package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestProcessesShareTheCache(t *testing.T) {
	const users, rounds = 4, 5
	path, dir := testzk.Path(t), t.TempDir()
	caches := make([]*cacheRebuild, users)
	errs := make([]error, users)
	out := make([]bytes.Buffer, users)
	var all sync.WaitGroup
	for i := range users {
		caches[i] = parse(t, "-path", path, "-dir", dir, "-rounds", fmt.Sprint(rounds))
		caches[i].name = fmt.Sprintf("user-%d", i)
		all.Go(func() { errs[i] = caches[i].run(testzk.Context(t), testzk.Connect(), &out[i]) })
	}
	all.Wait()
	rebuilt := 0
	for i, c := range caches {
		require.NoError(t, errs[i])
		want := fmt.Sprintf("user-%d has placed 5 orders and rebuilt the cache %d times\n", i, c.rebuilt)
		require.Equal(t, want, out[i].String())
		rebuilt += c.rebuilt
	}
	require.Positive(t, rebuilt)
	require.LessOrEqual(t, rebuilt, users*rounds)
	orders, err := caches[0].orders()
	require.NoError(t, err)
	require.Len(t, orders, users*rounds)
	cached, err := caches[0].read(t.Context())
	require.NoError(t, err)
	require.Equal(t, orders, cached)
	testzk.Empty(t, path)
}

func TestWriterBecomesAReaderWithNoWriterBetween(t *testing.T) {
	lock, err := rwlock.New(testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	require.NoError(t, err)
	c := parse(t, "-dir", t.TempDir())
	c.lock = lock
	require.NoError(t, os.Mkdir(filepath.Join(c.dir, "orders"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "orders", "first"), nil, 0o600))

	before, err := lock.Write().Acquire(testzk.Context(t))
	require.NoError(t, err)
	reader := make(chan *recipes.Hold, 1)
	go func() {
		written, reading, err := c.writeThenRead(testzk.Context(t))
		assert.NoError(t, err)
		assert.Equal(t, []string{"first"}, written)
		reader <- reading
	}()
	waitForWriters(t, lock, 2)
	writer := make(chan *recipes.Hold, 1)
	go func() {
		writing, err := lock.Write().Acquire(testzk.Context(t))
		assert.NoError(t, err)
		writer <- writing
	}()
	waitForWriters(t, lock, 3)
	require.NoError(t, before.Release())
	select {
	case reading := <-reader:
		require.NoError(t, reading.Err())
		waitForWriters(t, lock, 1) // only the waiting one: the write hold is released
		require.NoError(t, reading.Release())
		require.NoError(t, (<-writer).Release())
	case writing := <-writer:
		require.NoError(t, writing.Release())
		require.NoError(t, (<-reader).Release())
		require.FailNow(t, "another writer had the lock in between")
	}
}

func waitForWriters(t *testing.T, lock *rwlock.RWLock, n int) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		all, err := lock.Write().Participants(testzk.Context(t))
		return err == nil && len(all) == n
	}, "not %d writers in the queue", n)
}

func TestUnfinishedWriteIsDetected(t *testing.T) {
	for name, files := range map[string]struct{ list, size, seen string }{
		"for the first time": {"one\ntwo\n", "", "2 orders, and a size of ''"},
		"the list":           {"one\ntwo\n", "1", "2 orders, and a size of '1'"},
		"the size":           {"", "1", "0 orders, and a size of '1'"},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, "-path", testzk.Path(t), "-dir", t.TempDir())
			require.NoError(t, os.WriteFile(filepath.Join(c.dir, "list"), []byte(files.list), 0o600))
			if files.size != "" {
				require.NoError(t, os.WriteFile(filepath.Join(c.dir, "size"), []byte(files.size), 0o600))
			}
			err := c.run(testzk.Context(t), testzk.Connect(), &bytes.Buffer{})
			require.EqualError(t, err, "the cache is being written: "+files.seen)
		})
	}
}

func TestFolderIsRequired(t *testing.T) {
	require.EqualError(t, parse(t).run(t.Context(), testzk.Connect(), &bytes.Buffer{}), "-dir is missing")
}

func parse(t *testing.T, args ...string) *cacheRebuild {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	c := newCacheRebuild(flags)
	require.NoError(t, flags.Parse(args))
	return c
}
