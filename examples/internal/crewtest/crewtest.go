// Package crewtest is for the tests of examples whose story takes several processes.
package crewtest

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

// Folder is where the examples have their nodes.
const Folder = "/docent-examples"

// Trigger is a writer that calls a function when a line that matches pattern is written, with what the pattern's groups match.
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

// Interrupt runs an example until it tells what matches pattern, and requires that the interruption is the reason of its end.
func Interrupt(t *testing.T, pattern string, run func(context.Context, io.Writer) error) {
	t.Helper()
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := run(ctx, Trigger(pattern, func([]string) { cancel(interrupted) }))
	require.ErrorIs(t, err, interrupted)
}

// Story is the path below which the only story that was played on a server had its nodes.
func Story(t *testing.T, server testzk.Server) string {
	t.Helper()
	stories, _, err := testzk.Connected(t, server.Connect()).Children(testzk.Context(t), Folder)
	require.NoError(t, err)
	require.Len(t, stories, 1)
	return Folder + "/" + stories[0]
}

// NobodyInLine waits until no candidate is left.
func NobodyInLine(t *testing.T, server testzk.Server, election string) {
	t.Helper()
	client := testzk.Connected(t, server.Connect())
	testzk.Eventually(t, func() bool {
		line, err := leader.Participants(testzk.Context(t), client, election)
		require.NoError(t, err)
		return len(line) == 0
	}, "somebody is left in line")
}
