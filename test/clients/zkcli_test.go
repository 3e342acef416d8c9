package clients

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

// cliCommands are the commands for the real command line, in one session.
var cliCommands = []string{
	"ls /",
	"create /a one",
	"create /a again",
	"create /a/b two",
	"create /missing/b two",
	"create -s /a/s-",
	"create -e /a/e mine",
	"create -e -s /a/es-",
	"create -c /a/c",
	"create -t 600000 /a/t",
	"create -t 600000 -s /a/ts-",
	"create -e /a/e/child",
	"create /a/",
	"get /a",
	"get -s /a",
	"get -s /a/e",
	"get /missing",
	"stat /a",
	"stat /a/c",
	"stat /a/t",
	"stat /missing",
	"stat /",
	"stat /zookeeper",
	"set /a three",
	"set -s /a four",
	"set -v 0 /a five",
	"set -v 2 -s /a six",
	"set /missing seven",
	"ls /a",
	"ls -s /a",
	"ls -R /",
	"ls /missing",
	"getAllChildrenNumber /a",
	"getAllChildrenNumber /",
	"getAllChildrenNumber /missing",
	"getEphemerals /a/es",
	"getEphemerals /nothing",
	"sync /a",
	"sync /missing",
	"get -w /a",
	"set /a eight",
	"ls -w /a",
	"create /a/w",
	"stat -w /a/w",
	"delete /a/w",
	"addWatch -m PERSISTENT /p",
	"create /p",
	"set /p one",
	"removewatches /p",
	"addWatch -m PERSISTENT_RECURSIVE /r",
	"create /r",
	"create /r/below",
	"deleteall /r",
	"getAcl /a",
	"getAcl -s /a",
	"whoami",
	"create /private x auth::cdrwa",
	"addauth digest ann:secret",
	"whoami",
	"create /private x auth::cdrwa",
	"getAcl /private",
	"setAcl /private digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0=:r,auth::cdrwa",
	"getAcl -s /private",
	"setAcl -v 0 /private world:anyone:r",
	"setAcl /private world:anyone:r",
	"setAcl /private world:anyone:cdrwa",
	"set /private y",
	"getAcl /private",
	"setAcl /a nothing:anyone:r",
	"setquota -n 100 /a",
	"setquota -b 1000 /a",
	"listquota /a",
	"create /a/q counted",
	"listquota /a",
	"get /zookeeper/quota/a/zookeeper_limits",
	"delquota /a",
	"listquota /a",
	"config",
	"reconfig -remove 1",
	"delete -v 5 /a/b",
	"delete /a",
	"delete /a/b",
	"delete /a/b",
	"deleteall /a",
	"deleteall /missing",
	"delete /zookeeper",
	"ls -R /",
	"version",
}

func TestCommandLine(t *testing.T) {
	realzk.Need(t)
	java := append(peers.VM(t), "-cp", peers.ZooKeeperJar(t), "org.apache.zookeeper.ZooKeeperMain")
	onEach(t, func(t *testing.T, c *control) transcript {
		ctx, cancel := context.WithTimeout(context.Background(), scriptLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, java[0], append(slices.Clone(java[1:]), "-server", c.Addr())...)
		cmd.Stdin = strings.NewReader(cliInput())
		output, err := cmd.CombinedOutput()
		t.Logf("%s", output)
		require.NoError(t, err)
		return cliTranscript(t, string(output))
	})
}

// cliInput returns the commands with reads of missing nodes in between. The errors of these reads
// separate the output.
func cliInput() string {
	var input strings.Builder
	for i, command := range cliCommands {
		fmt.Fprintf(&input, "ls %s\n%s\n", separator(i), command)
	}
	fmt.Fprintf(&input, "ls %s\nls /\nquit\n", separator(len(cliCommands))) // the exit code is that of the last command
	return input.String()
}

func separator(i int) string { return fmt.Sprintf("/command-%d", i) }

// cliTranscript returns the output of each command, and then the events. Another thread prints the
// events, at any time.
func cliTranscript(t *testing.T, output string) (seen transcript) {
	output, events := cutEvents(normalise(output))
	for i, command := range cliCommands {
		_, rest, found := strings.Cut(output, "Node does not exist: "+separator(i)+"\n")
		require.True(t, found, "the command line did not get to %q", command)
		answer, _, _ := strings.Cut(rest, "Node does not exist: "+separator(i+1)+"\n")
		seen = append(seen, command+": "+sortIdentities(command, strings.TrimSpace(answer)))
	}
	require.Contains(t, output, separator(len(cliCommands)), "the command line did not reach its end")
	return append(seen, events...)
}

// sortIdentities sorts the answer to whoami, which has no order.
func sortIdentities(command, answer string) string {
	if command != "whoami" {
		return answer
	}
	lines := strings.Split(answer, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// cutEvents removes the events from the output, and returns them as well.
func cutEvents(output string) (string, []string) {
	const mark = "\x00" // of an event that is printed at once; it ends no line
	var rest, events, marked []string
	output = cliEvent.ReplaceAllStringFunc(output, func(event string) string {
		marked = append(marked, strings.TrimSpace(event[strings.Index(event, "WatchedEvent"):]))
		return mark
	})
	for line := range strings.Lines(output) {
		for ; strings.Contains(line, mark); line = strings.Replace(line, mark, "", 1) {
			if !strings.HasPrefix(marked[0], "WatchedEvent state:Closed") {
				events = append(events, marked[0])
			}
			marked = marked[1:]
		}
		switch {
		case line == "":
		case strings.HasPrefix(line, "WatchedEvent state:Closed"): // printed unless the process ends before
		case strings.HasPrefix(line, "WatchedEvent"):
			events = append(events, strings.TrimSpace(line))
		case line != "WATCHER::\n" && line != "\n":
			rest = append(rest, line)
		}
	}
	return strings.Join(rest, ""), events
}

var (
	// cliEvent is what is printed of an event, also in the middle of a line of an answer.
	cliEvent  = regexp.MustCompile(`\nWATCHER::\n\nWatchedEvent [^\n]*\n`)
	cliTimes  = regexp.MustCompile(`(?m)^([cm]time) = .* \d{4}$`)
	cliOwners = regexp.MustCompile(`(?m)^(ephemeralOwner) = 0x1[0-9a-f]+$`)
	cliZxids  = regexp.MustCompile(`zxid: -?\d+ `)
)

// normalise removes what differs between runs. The zxids do not differ, because the server has no
// other client from its first transaction on.
func normalise(output string) string {
	output = cliTimes.ReplaceAllString(output, "$1 = <a time>")
	output = cliZxids.ReplaceAllString(output, "")
	return cliOwners.ReplaceAllString(output, "$1 = <the session>")
}

// The command line prints events in a thread of its own.
func TestEventsAreCutOutOfTheAnswers(t *testing.T) {
	const event = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:NodeCreated path:/a\n"
	named := func(path string) string { return strings.Replace(event, "/a", path, 1) }
	for output, events := range map[string][]string{
		"[cli, zookeeper]\n":                                 nil,
		event + "[cli, zookeeper]\n":                         {"/a"},
		"[cli" + event + ", zookeeper]\n":                    {"/a"},
		"[cli, zookeeper]" + event + "\n":                    {"/a"},
		"[cli, zookeeper]\n" + event + named("/b"):           {"/a", "/b"},
		"[" + event + "cli, " + named("/b") + "zookeeper]\n": {"/a", "/b"},
		"\nWATCHER::\n[cli, zookeeper]\n" + strings.TrimPrefix(event, "\nWATCHER::\n") + named("/b"): {"/a", "/b"},
	} {
		rest, cut := cutEvents(output)
		require.Equal(t, "[cli, zookeeper]\n", rest, "%q", output)
		require.Len(t, cut, len(events), "%q", output)
		for i, path := range events {
			require.Equal(t, "WatchedEvent state:SyncConnected type:NodeCreated path:"+path, cut[i], "%q", output)
		}
	}
}
