package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// session matches a session on the page.
var session = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// ahead matches the node of a holder in an error. Its id is shorter on the page, and its number is that
// of all acquires before.
var ahead = regexp.MustCompile(`(behind \S+/_c_)\S+(-lock-)[0-9]{10}`)

// The sessions on the page are run. A line with $ is a command, and those behind it are its output. Ids,
// times and ages are others in each run.
func TestSessionsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	chroot := testzk.Path(t)
	openShop(t, chroot)
	commands := t.TempDir()
	wrapper := "#!/bin/sh\n" + asDocent + `=1 exec "` + os.Args[0] + `" "$@"` + "\n"
	writeFile(t, filepath.Join(commands, "docent"), wrapper, 0o700)
	sessions := session.FindAllStringSubmatch(string(page), -1)
	require.Len(t, sessions, strings.Count(string(page), "```console"))
	require.NotEmpty(t, sessions)
	for _, s := range sessions {
		for _, step := range strings.Split(s[1], "$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", "exec 2>&1; "+line)
			cmd.Env = append(os.Environ(),
				"DOCENT_CONNECT="+testzk.Connect()+chroot, "PATH="+commands+":"+os.Getenv("PATH"))
			_, out, _ := finishCommand(t, cmd)
			want, out = ahead.ReplaceAllString(want, "$1$2"), ahead.ReplaceAllString(out, "$1$2")
			assert.Equal(t, constant(want, map[string]int{}), constant(out, map[string]int{}), line)
		}
	}
}

// openShop makes the locks that sessions on the page show and take away.
func openShop(t *testing.T, chroot string) {
	t.Helper()
	a, b := testzk.Connected(t, testzk.Connect()+chroot), testzk.Connected(t, testzk.Connect()+chroot)
	acquire(t, newMutex(t, a, "/shop/orders", "host-3", 4711))
	queue(t, a, newMutex(t, b, "/shop/orders", "host-5", 815), "/shop/orders", 2)
	acquire(t, newMutex(t, b, "/shop/stock", "host-5", 815))
	queue(t, a, newMutex(t, a, "/shop/stock", "host-3", 4711), "/shop/stock", 2)
	exports, err := semaphore.New(a, "/shop/exports", 3, semaphore.WithData([]byte("10.0.0.3")))
	require.NoError(t, err)
	acquire(t, exports)
}

// The page has the exit codes and the flags that the help texts have.
func TestThePageHasAllFlagsAndExitCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, name := range append(subcommands, "docent") {
		help, err := os.ReadFile(filepath.Join("testdata", "help-"+name+".txt"))
		require.NoError(t, err)
		for _, flag := range regexp.MustCompile(`(?m)^   --([-a-z]+)`).FindAllStringSubmatch(string(help), -1) {
			if name := flag[1]; name != "help" {
				assert.Contains(t, string(page), "`--"+name)
			}
		}
		for _, code := range regexp.MustCompile(`(?m)^     ([0-9]+) `).FindAllStringSubmatch(string(help), -1) {
			assert.Regexp(t, `(?m)^\|.*\b`+code[1]+`\b.*\|`, string(page))
		}
	}
}
