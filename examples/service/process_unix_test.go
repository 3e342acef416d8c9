//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// The job that has begun when SIGTERM comes is finished, and no other one begins.
func TestProcessStopsAtSIGTERM(t *testing.T) {
	server := zktest.Start(t)
	service := exec.Command(os.Args[0], "-connect", server.Addr(), "-job", "50ms")
	service.Env = append(os.Environ(), serviceEnv+"=1")
	service.Stderr = os.Stderr
	output, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	t.Cleanup(func() { _ = service.Process.Kill() })

	var text strings.Builder
	signaled := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !signaled && strings.Contains(lines.Text(), "the job begins") {
			signaled = true
			require.NoError(t, service.Process.Signal(syscall.SIGTERM))
		}
	}
	require.NoError(t, service.Wait(), "%s", &text)
	require.True(t, signaled, "%s", &text)
	require.Equal(t, strings.Count(text.String(), "the job begins"), strings.Count(text.String(), "the job is done"))
	require.Contains(t, text.String(), "the service has stopped")
	require.Empty(t, server.Sessions(), "it has closed its session")
}

func TestBadCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"now": `unexpected argument "now"`, "-job soon": `"soon"`, "-h": "/readyz",
	} {
		var out, errs bytes.Buffer
		code := runMain(strings.Fields(args), &out, &errs)
		require.Equal(t, args == "-h", code == 0)
		require.Contains(t, errs.String(), want)
		require.Empty(t, out.String())
	}
	var out, errs bytes.Buffer
	require.Equal(t, 1, runMain([]string{"-connect", "host:port"}, &out, &errs))
	require.Contains(t, out.String(), "host:port")
}
