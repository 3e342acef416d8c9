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
)

// session matches a session on the page.
var session = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// The sessions on the page are run. A line with $ is a command, and those behind it are its output.
func TestSessionsOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
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
				"DOCENT_CONNECT="+testzk.Connect()+testzk.Path(t), "PATH="+commands+":"+os.Getenv("PATH"))
			_, out, _ := finishCommand(t, cmd)
			assert.Equal(t, want, out, line)
		}
	}
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
