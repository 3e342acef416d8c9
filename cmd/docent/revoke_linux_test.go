package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/cmd/docent/internal/supervise"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
)

// revoked runs docent revoke, which must succeed without a message.
func revoked(t *testing.T, args ...string) {
	t.Helper()
	code, out, errs := finish(t, append(connected("revoke"), args...)...)
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	require.Contains(t, out, "docent:sh[")
}

// says waits until docent has printed a message.
func (p *process) says(message string) {
	p.t.Helper()
	testzk.Eventually(p.t, func() bool { return strings.Contains(p.errs.String(), "docent: "+message+"\n") },
		"docent does not say %q: %s", message, &p.errs)
}

func asked(path string) string {
	return "another client has asked for the release of " + path + " (docent revoke): "
}

// holders returns the number of nodes that hold a lock.
func holders(t *testing.T, c *framework.Client, path string) int {
	t.Helper()
	o, err := inspect.Show(testzk.Context(t), c, path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0
	}
	require.NoError(t, err)
	return o.Holders
}

func TestACommandThatIsAskedForItsLockEndsBeforeTheRelease(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"mutex": nil, "reader": {"--shared"}, "permits": {"--limit", "3", "--permits", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, end := testzk.Path(t), filepath.Join(t.TempDir(), "end")
			args := append(append(connected("lock"), flags...), path, "--", "sh", "-c", `
				trap "told=yes" TERM; echo held
				while [ -z "$told" ]; do sleep 0.01; done
				echo told; while ! [ -e "$0" ]; do sleep 0.01; done; exit 6`, end)
			p := start(t, args...)
			require.Equal(t, "held", p.line())
			revoked(t, path)
			require.Equal(t, "told", p.line())
			p.says(asked(path) + "told the command to end")
			c := testzk.Connected(t, testzk.Connect())
			assert.Positive(t, holders(t, c, path), "the lock is released before the command has ended")
			require.NoError(t, os.WriteFile(end, nil, 0o600))
			assert.Equal(t, 6, p.wait(), &p.errs)
			testzk.Eventually(t, func() bool { return holders(t, c, path) == 0 }, "a node is left")
		})
	}
}

func TestACommandThatDoesNotCatchTheRequestIsTerminated(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := holding(t, path)
	revoked(t, path)
	assert.Equal(t, 128+15, p.wait(), &p.errs)
}

func TestARequestCanKillTheCommand(t *testing.T) {
	t.Parallel()
	path, file := testzk.Path(t), filepath.Join(t.TempDir(), "witness")
	args := append(connected("lock"), "--on-revoke", "kill", "--grace", "100ms", path, "--")
	p := start(t, append(args, witness(file, stubborn)...)...)
	require.Equal(t, "held", p.line())
	code, _, errs := finish(t, append(connected("revoke"), path)...)
	require.Zero(t, code, errs)
	assert.Equal(t, 128+9, p.wait(), &p.errs)
	assert.NotContains(t, p.errs.String(), "the lock was", "it was held until then")
	code, _, errs = finish(t, append(connected("lock", path, "--"), witness(file, "exit 4")...)...)
	assert.Equal(t, 4, code, "a process is left: %s", errs)
}

func TestARequestCanBeIgnored(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := start(t, connected("lock", "--on-revoke", "ignore", path, "--", "sh", "-c",
		`trap "echo told" TERM; trap "exit 5" USR1; echo held; while :; do sleep 0.01; done`)...)
	require.Equal(t, "held", p.line())
	revoked(t, path)
	p.says(asked(path) + "the command goes on")
	p.signal(syscall.SIGUSR1)
	line, err := p.tryLine()
	assert.Error(t, err, line)
	assert.Equal(t, 5, p.wait())
}

// The next candidate leads, and the one that was asked stands again behind it, without a pause.
func TestALeaderThatIsAskedStandsAgain(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	first := start(t, connected("elect", path, "--", "sh", "-c", leads)...)
	require.Equal(t, "leads", first.line())
	second := start(t, connected("elect", path, "--", "sh", "-c", leads)...)
	c := testzk.Connected(t, testzk.Connect())
	nodes := func(want int) func() bool {
		return func() bool {
			o, err := inspect.Show(testzk.Context(t), c, path)
			return err == nil && len(o.Nodes) == want
		}
	}
	testzk.Eventually(t, nodes(2), "there are not two candidates")
	revoked(t, path)
	assert.Equal(t, "leads", second.line())
	first.says(asked(path) + "told the command to end")
	testzk.Eventually(t, nodes(2), "the first candidate does not stand again")
	revoked(t, path)
	assert.Equal(t, "leads", first.line())
	assert.NotContains(t, first.errs.String(), "exit code", "that is no failure")
	for _, p := range []*process{first, second} {
		p.signal(syscall.SIGTERM)
		p.wait()
	}
}

func TestOnceEndsWithTheCommandOfALeaderThatIsAsked(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := start(t, connected("elect", "--once", path, "--", "sh", "-c", leads)...)
	require.Equal(t, "leads", p.line())
	revoked(t, path)
	assert.Equal(t, 128+15, p.wait(), &p.errs)
}

// askedHold is a hold whose release was asked for before.
type askedHold struct{}

func (askedHold) Revoked() <-chan struct{} {
	revoked := make(chan struct{})
	close(revoked)
	return revoked
}

func (askedHold) Path() string          { return "/a/lock-0000000000" }
func (askedHold) Token() int64          { return 1 }
func (askedHold) Done() <-chan struct{} { return nil }
func (askedHold) Err() error            { return nil }
func (askedHold) ValidUntil() time.Time { return time.Now().Add(time.Hour) }

func TestACommandIsNotStartedIfItsLockWasAskedForBefore(t *testing.T) {
	t.Parallel()
	relay, ctx, stop := startRelay(testzk.Context(t))
	t.Cleanup(stop)
	r := &runner{
		client: testzk.Connected(t, testzk.Connect()), path: "/a", answer: supervise.Term, signals: relay,
		command: supervise.Command{Path: "/nonexistent"},
	}
	_, err := r.under(ctx, askedHold{})
	require.ErrorIs(t, err, errAsked)
	assert.Equal(t, exitNotAcquired, codeOf(err))
	code, err := outcome(supervise.Ending{}, err, nil)
	assert.Zero(t, code)
	assert.Equal(t, exitNotAcquired, codeOf(err), "--conflict-exit-code counts")

	r.answer = supervise.Ignore
	assert.False(t, r.isAsked(askedHold{}))
}

// A candidate whose command was not started stands again, unless it may do so only once.
func TestACandidateThatWasAskedBeforeItsTermStandsAgain(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{false, true} {
		var errs strings.Builder
		relay, ctx, stop := startRelay(testzk.Context(t))
		t.Cleanup(stop)
		lead := &terms{once: once, runner: &runner{
			client: testzk.Connected(t, testzk.Connect()), path: "/a", answer: supervise.Kill,
			signals: relay, errs: &errs,
		}}
		err := lead.run(ctx, askedHold{})
		assert.Equal(t, once, !lead.again(nil))
		assert.Equal(t, once, err != nil)
		if !once {
			assert.Equal(t, "docent: "+errAsked.Error()+"\n", errs.String())
		}
	}
}
