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

// moments are the lines after which the tests end the program.
var moments = map[string]string{
	"before the kill": `record 1 -> 2$`,
	"during the wait": `This wait is that timeout`,
	"after the wait":  `The store refuses it`,
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
			requireClosed(t, server)
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

// A killed process cannot clean up. The workers notice its end by themselves.
func TestWorkersEndWithAKilledParent(t *testing.T) {
	t.Parallel()
	for name, moment := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t)
			server := p.line(t, started)[1]
			p.line(t, moment)
			require.NoError(t, p.cmd.Process.Kill())
			require.Equal(t, -1, p.end(t), "%s", &p.output)
			requireClosed(t, server)
		})
	}
}

// Servers that do not answer for longer than the session timeout cost the holder its lock, unless
// it is just releasing it. The workers must go on, and the record must be right.
func TestOutageIsSurvived(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	p := launch(t, "-connect", server.Connect(), "-increments", "50") // so that there is something left to do
	p.line(t, `The store refuses it`)
	server.Pause(t)
	p.line(t, `worker \d (lost the lock and tries again|released the lock and got no answer|`+
		`did not get the lock and tries again): .*(session lost|not connected)`)
	server.Resume(t)
	require.Zero(t, p.end(t), "%s", &p.output)
}
