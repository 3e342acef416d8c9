package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// zkCli is the command line of the real distribution, at Debian's path.
const zkCli = "/usr/share/zookeeper/bin/zkCli.sh"

// cliEvent is what the command line prints of an event, also in the middle of a line of an answer.
var cliEvent = regexp.MustCompile(`\nWATCHER::\n\nWatchedEvent [^\n]*\n`)

func TestWorksWithTheRealCommandLine(t *testing.T) {
	if _, err := os.Stat(zkCli); err != nil {
		t.Skipf("ZooKeeper's own command line is not installed: %v", err)
	}
	r := start(t)
	cli := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, zkCli, append([]string{"-server", r.addr}, args...)...)
		cmd.Dir = t.TempDir()
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%q: %s", args, output)
		return cliEvent.ReplaceAllString(string(output), "")
	}
	assert.Contains(t, cli("create", "/cli", "hello"), "Created /cli")
	get := cli("get", "-s", "/cli")
	assert.Contains(t, get, "\nhello\n")
	assert.Contains(t, get, "\ncZxid = ")
	assert.Contains(t, cli("ls", "/"), "[cli, zookeeper]")
}
