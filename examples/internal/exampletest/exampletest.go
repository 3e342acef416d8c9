// Package exampletest has helpers for the tests of examples that start several processes.
package exampletest

import (
	"context"
	"errors"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
)

// Folder is the path below which the examples create their nodes.
const Folder = "/docent-examples"

// Trigger returns a writer that calls a function when a line that matches pattern is written. The
// function gets what the groups of the pattern match.
func Trigger(pattern string, call func(groups []string)) io.Writer {
	return trigger{regexp.MustCompile(pattern), call}
}

type trigger struct {
	expr *regexp.Regexp
	call func(groups []string)
}

func (w trigger) Write(p []byte) (int, error) {
	if groups := w.expr.FindStringSubmatch(string(p)); groups != nil {
		w.call(groups)
	}
	return len(p), nil
}

// Interrupt runs an example, cancels its context when it prints a line that matches pattern, and
// requires that the example returns the cause of the cancellation.
func Interrupt(t *testing.T, pattern string, run func(context.Context, io.Writer) error) {
	t.Helper()
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := run(ctx, Trigger(pattern, func([]string) { cancel(interrupted) }))
	require.ErrorIs(t, err, interrupted)
}

// Path returns the path below which the only example that ran on a server created its nodes.
func Path(t *testing.T, server testzk.Server) string {
	t.Helper()
	names, _, err := testzk.Connected(t, server.Connect()).Children(testzk.Context(t), Folder)
	require.NoError(t, err)
	require.Len(t, names, 1)
	return Folder + "/" + names[0]
}

// NoCandidates waits until the election has no candidates.
func NoCandidates(t *testing.T, server testzk.Server, election string) {
	t.Helper()
	client := testzk.Connected(t, server.Connect())
	list, err := leader.New(client, election)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		candidates, err := list.Participants(testzk.Context(t))
		require.NoError(t, err)
		return len(candidates) == 0
	}, "candidates are left in the queue")
}
