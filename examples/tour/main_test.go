package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/testzk"
)

var update = flag.Bool("update", false, "write testdata/tour.txt")

func TestMain(m *testing.M) {
	testzk.Widen()
	leaks.Main(m)
}

// Tokens depend on what the server does in the background.
var token = regexp.MustCompile(`token \d+`)

func TestTour(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "", nil), "%s", &out)
	got := token.ReplaceAllString(out.String(), "token N")
	golden := filepath.Join("testdata", "tour.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./examples/tour -update writes %s", golden)
}

func TestTourHasAllRecipes(t *testing.T) {
	folders, err := filepath.Glob("../../recipes/*/doc.go")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	var shown []string
	for _, c := range chapters {
		shown = append(shown, c.name)
	}
	for _, doc := range folders {
		name := filepath.Base(filepath.Dir(doc))
		if name != "locktest" { // is for tests
			require.Contains(t, shown, name)
		}
	}
}

func TestSomeChapters(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "group,counter", nil))
	exampletest.Lines(t, out.String(), "== group:", "removed bob", "== counter:", "of a block of 10", "go doc")
	require.NotContains(t, out.String(), "== mutex")
}

func TestBadCommandLine(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, "group,queue", nil), `no chapter "queue"`)
	require.ErrorContains(t, run(t.Context(), io.Discard, "", []string{"now"}), `unexpected argument "now"`)
}

// Each chapter ends, with its goroutines and its server, wherever it is interrupted.
func TestInterruptEndsTheTour(t *testing.T) {
	for _, c := range chapters {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupted := errors.New("interrupted")
			first := exampletest.Trigger("-> ", func([]string) { cancel(interrupted) })
			err := run(ctx, first, c.name, nil)
			require.Error(t, err)
			require.True(t, errors.Is(err, interrupted) || errors.Is(err, context.Canceled), "%v", err)
		})
	}
}

func TestTheTourWaitsOnTerminalsOnly(t *testing.T) {
	t.Setenv("TERM", "xterm")
	synctest.Test(t, func(t *testing.T) {
		device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal
		require.NoError(t, err)
		defer device.Close()
		for _, c := range []struct {
			out   io.Writer
			fast  bool
			waits bool
		}{{device, false, true}, {device, true, false}, {io.Discard, false, false}} {
			begun := time.Now()
			_, err := io.WriteString(screen(t.Context(), c.out, c.fast), "a line\n")
			require.NoError(t, err)
			require.Equal(t, c.waits, time.Since(begun) > 0)
		}
	})
}

// The columns must fit on a screen.
func TestLinesAreNotWide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "tour.txt"))
	require.NoError(t, err)
	lines := slices.Collect(strings.Lines(string(text)))
	require.LessOrEqual(t, len(lines), 130)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 100, line)
	}
}
