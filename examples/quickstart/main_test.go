package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/internal/testzk"
)

// brokenEnv makes the workers of this test binary take locks that do not exclude each other.
const brokenEnv = "DOCENT_QUICKSTART_BROKEN"

func TestMain(m *testing.M) {
	if child.IsChild() { // a demonstration in the process of a test starts this binary again
		stdin := io.Reader(os.Stdin)
		if os.Getenv(brokenEnv) != "" {
			stdin = withOwnLock(stdin)
		}
		os.Exit(workerMain(stdin, os.Stderr))
	}
	testzk.Widen()
	code := m.Run()
	_ = os.RemoveAll(binary.dir)
	os.Exit(code)
}

// withOwnLock reads the job from stdin and replaces its lock by one that no other worker uses.
func withOwnLock(stdin io.Reader) io.Reader {
	var j job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		panic(err)
	}
	j.Lock += fmt.Sprintf("/%d", j.Worker)
	changed, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	return io.MultiReader(bytes.NewReader(changed), stdin)
}

// output is a buffer that is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestBadCommandLineIsReported(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-workers 1", "-workers 1:"},
		{"-workers 21", "-workers 21:"},
		{"-workers many", `"many"`},
		{"-increments 0", "-increments 0:"},
		{"-increments -3", "-increments -3:"},
		{"-increments 51", "-increments 51:"},
		{"-session 999ms", "-session 999ms:"},
		{"-session 61s", "-session 1m1s:"},
		{"-session 3", `"3"`},
		{"-connect :x/", `":x/"`},
		{"-connect localhost:99999", "localhost:99999"},
		{"-colour red", "-colour"},
		{"now", `"now"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errs output
			require.Equal(t, exitUsage, run(strings.Fields(c.args), &out, &errs))
			require.Contains(t, errs.String(), c.want)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), "one line: %s", errs.String())
			require.NotContains(t, out.String(), "Workers")
		})
	}
}

func TestHelp(t *testing.T) {
	var out, errs output
	require.Zero(t, run([]string{"-h"}, &out, &errs))
	for _, flag := range []string{"-connect", "-workers", "-increments", "-session", "-slow"} {
		require.Contains(t, errs.String(), flag)
	}
}

func TestSlowOutputCanBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for args, slow := range map[string]bool{"": false, "-slow": true} {
			cfg, err := parse(strings.Fields(args), io.Discard)
			require.NoError(t, err)
			var out output
			start := time.Now()
			newReporter(screen(t.Context(), cfg, &out), 20).intro(cfg)
			require.Equal(t, slow, time.Since(start) > 0)
			require.Equal(t, slow, cfg.limit > 2*time.Minute, "the pauses are no delay of the lock")
			require.Contains(t, out.String(), "A lock between processes")
			require.NotContains(t, out.String(), "\x1b", "it is no terminal")
		}
	})
}

func TestWorkerWithoutAJob(t *testing.T) {
	var errs output
	require.Equal(t, exitFailed, workerMain(strings.NewReader(""), &errs), "the parent ended before it sent one")
	require.Empty(t, errs.String())
	require.Equal(t, exitFailed, workerMain(strings.NewReader("hello"), &errs))
	require.Contains(t, errs.String(), "without a job")
}

func TestReasonOfAnEarlyEndComesFirst(t *testing.T) {
	why, what := errors.New("why"), errors.New("what")
	ctx := ended(t, why)
	require.EqualError(t, reason(ctx, what), "why: what")
	require.ErrorIs(t, reason(ctx, what), what)
	require.Equal(t, why, reason(ctx, why))
	require.Equal(t, errInterrupted, reason(ended(t, errInterrupted), what))
	require.Equal(t, what, reason(t.Context(), what))
	require.NoError(t, reason(ctx, nil))
}
