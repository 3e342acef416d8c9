package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func TestProcessesTakeTurns(t *testing.T) {
	const users, rounds = 4, 5
	path, dir := testzk.Path(t), t.TempDir()
	errs := make([]error, users)
	out := make([]bytes.Buffer, users)
	var all sync.WaitGroup
	for i := range users {
		r := parse(t, "-path", path, "-dir", dir, "-rounds", fmt.Sprint(rounds))
		r.name = fmt.Sprintf("user-%d", i)
		all.Go(func() { errs[i] = r.run(testzk.Context(t), testzk.Connect(), &out[i]) })
	}
	all.Wait()
	turns := map[string]int{}
	var last int64
	for line := range strings.Lines(content(t, dir, "users")) {
		var name string
		var token int64
		_, err := fmt.Sscanf(line, "%s %d\n", &name, &token)
		require.NoError(t, err, line)
		require.Less(t, last, token)
		turns[name]++
		last = token
	}
	require.Len(t, turns, users)
	for i := range users {
		name := fmt.Sprintf("user-%d", i)
		require.NoError(t, errs[i])
		require.Equal(t, name+" has used the resource 5 times\n", out[i].String())
		require.Equal(t, rounds, turns[name])
	}
	require.Equal(t, fmt.Sprint(users*rounds), content(t, dir, "counter"))
	require.NoFileExists(t, filepath.Join(dir, "inside"))
	testzk.Empty(t, path)
}

func TestSecondUserInsideIsDetected(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.WriteFile(inside, nil, 0o600))
	r := parse(t, "-path", testzk.Path(t), "-dir", dir)
	err := r.run(testzk.Context(t), testzk.Connect(), &bytes.Buffer{})
	require.EqualError(t, err, fmt.Sprintf("go-%d is not alone: %s is there", os.Getpid(), inside))
	require.FileExists(t, inside)
	require.NoFileExists(t, filepath.Join(dir, "counter"))
}

func TestFolderIsRequired(t *testing.T) {
	require.EqualError(t, parse(t).run(t.Context(), testzk.Connect(), &bytes.Buffer{}), "-dir is missing")
}

func parse(t *testing.T, args ...string) *limitedResource {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	r := newLimitedResource(flags)
	require.NoError(t, flags.Parse(args))
	return r
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}
