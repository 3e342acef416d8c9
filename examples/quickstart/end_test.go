//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// The moments at which an end from outside is interesting.
var moments = map[string]string{
	"before the accident": `record 1 -> 2$`,
	"during the wait":     `This wait is that timeout`,
	"after the wait":      `The store refuses it`,
}

func TestInterruptEndsEverything(t *testing.T) {
	t.Parallel()
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t)
			server := p.line(t, started)[1]
			p.line(t, moment)
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			require.Equal(t, exitInterrupted, p.end(t), "%s", &p.output)
			require.Regexp(t, `quickstart: interrupted\n$`, p.output.String())
			requireGone(t, server)
		})
	}
}

func TestInterruptLeavesNothingOnAGivenServer(t *testing.T) {
	t.Parallel()
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testzk.Own(t, testzk.Seldom)
			client := testzk.Connected(t, server.Connect())
			p := launch(t, "-connect", server.Connect())
			p.line(t, moment)
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			require.Equal(t, exitInterrupted, p.end(t), "%s", &p.output)
			_, err := client.Exists(t.Context(), folder)
			require.ErrorIs(t, err, zk.ErrNoNode)
		})
	}
}

func TestInterruptAtTheBeginning(t *testing.T) {
	t.Parallel()
	p := launch(t)
	p.line(t, `A lock between processes`)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, exitInterrupted, p.end(t), "%s", &p.output)
}

// Nobody can tidy up in a process that is killed: the workers notice by themselves.
func TestKilledParentTakesEverythingWithIt(t *testing.T) {
	t.Parallel()
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t)
			server := p.line(t, started)[1]
			p.line(t, moment)
			require.NoError(t, p.cmd.Process.Kill())
			require.Equal(t, -1, p.end(t), "%s", &p.output)
			requireGone(t, server)
		})
	}
}

// Servers that are silent for longer than a session cost the holder its lock, unless it is just giving it back. That is no reason to
// give up, and no excuse for a wrong record.
func TestOutageIsSurvived(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	p := launch(t, "-connect", server.Connect(), "-increments", "50") // so that there is something left to do
	p.line(t, `The store refuses it`)
	server.Pause(t)
	p.line(t, `worker \d (lost the lock and tries again|gave the lock back and got no answer): .*session lost`)
	server.Resume(t)
	require.Zero(t, p.end(t), "%s", &p.output)
}
