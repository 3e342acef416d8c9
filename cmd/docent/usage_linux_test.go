package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files with the help texts")

// subcommands are those that have a help text in testdata.
var subcommands = []string{
	"lock", "elect", "ls", "show", "watch", "session", "revoke", "break", "limit", "counter", "doctor", "serve",
}

func TestHelp(t *testing.T) {
	for _, name := range append(subcommands, "docent") {
		t.Run(name, func(t *testing.T) {
			args := []string{name, "--help"}
			if name == "docent" {
				args = args[1:]
			}
			code, out, errs := finish(t, args...)
			require.Zero(t, code)
			require.Empty(t, errs)
			file := filepath.Join("testdata", "help-"+name+".txt")
			if *update {
				writeFile(t, file, out, 0o644)
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), out, "go test -run TestHelp -update writes the file")
		})
	}
}

func TestWithoutACommandDocentPrintsItsHelp(t *testing.T) {
	_, help, _ := finish(t, "--help")
	code, out, errs := finish(t)
	assert.Zero(t, code)
	assert.Equal(t, help, out)
	assert.Empty(t, errs)
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	t.Parallel()
	const behind = "want one path, and a command behind --: see docent "
	const write = "write the command behind --: docent "
	const none = "no command: write it behind --, as in docent "
	const orYes = "give --yes to delete the node without a question"
	const perhapsNode = "want one path, and perhaps the name of a node: "
	const path = "framework: invalid path "
	const numbers = "want one path, and get, set N or add N behind all flags: see docent counter --help"
	const atLeastOne = ": want at least one permit, and not more than the limit"
	for line, want := range map[string]string{
		"look":                                  `"look": no such command: see docent --help`,
		"lock --shard /a -- true":               "flag provided but not defined: -shard: see docent lock --help",
		"lock /a true":                          write + "lock /a -- true: see docent lock --help",
		"elect /a sleep 10":                     write + "elect /a -- sleep 10: see docent elect --help",
		"lock /a /b -- true":                    behind + "lock --help",
		"elect -- true":                         behind + "elect --help",
		"lock /a":                               none + "lock /a -- command: see docent lock --help",
		"elect /a --":                           none + "elect /a -- command: see docent elect --help",
		"lock a -- true":                        path + `"a": it does not start with a slash`,
		"lock / -- true":                        `new mutex: ` + path + `"/": a lock needs a node of its own`,
		"lock -s -x /a -- true":                 "--shared and --exclusive exclude each other",
		"lock -s --limit 1 /a -- true":          "--limit excludes --shared and --exclusive",
		"lock --permits 1 /a -- true":           "--permits needs --limit, the number of permits of the semaphore",
		"lock --permits 3 --limit 2 /a -- true": "--permits 3 --limit 2" + atLeastOne,
		"lock --limit 0 /a -- true":             "--permits 1 --limit 0" + atLeastOne,
		"lock --wait=-1s /a -- true":            "--wait -1s: want a time that is not negative",
		"lock -n -w 1s /a -- true":              "--wait and --no-wait exclude each other",
		"lock -E 256 /a -- true":                "--conflict-exit-code 256: want a number from 0 to 255",
		"lock --grace 11s /a -- true":           "--grace 11s is longer than 10s, a third of the session timeout",
		"elect --on-revoke stop /a -- true":     `--on-revoke "stop": want one of ignore, term, kill`,
		"elect --grace=-1s /a -- true":          "--grace -1s: want a time that is not negative",
		"ls":                                    "want one path: see docent ls --help",
		"ls /a /b":                              "want one path: see docent ls --help",
		"ls a":                                  path + `"a": it does not start with a slash`,
		"ls --kind lock /a":                     `--kind "lock": want one of ` + join(kinds),
		"ls --state busy,free /a":               `--state "busy": want one of ` + join(states),
		"ls --limit 0 /a":                       "--limit 0: want a number that is positive",
		"ls -o xml /a":                          `--output "xml": want table or json`,
		"ls /a -- true":                         "docent ls runs no command: leave out --",
		"show":                                  "want one path: see docent show --help",
		"show -o= /a":                           `--output "": want table or json`,
		"watch /a /b":                           "want one path: see docent watch --help",
		"session /a":                            "want the id of a session and a path: see docent session --help",
		"session 0xg /a":                        `inspect: "0xg" is not an id such as 0x10000a2b3c40001`,
		"session 0x1 a":                         path + `"a": it does not start with a slash`,
		"session --cycles 0x1 /a":               "want one path: see docent session --help",
		"revoke":                                perhapsNode + "see docent revoke --help",
		"revoke a":                              path + `"a": it does not start with a slash`,
		"break /a b c":                          perhapsNode + "see docent break --help",
		"break /a":                              "there is no terminal to ask on: " + orYes,
		"limit":                                 "want one path, and perhaps a number: see docent limit --help",
		"limit a":                               path + `"a": it does not start with a slash`,
		"limit /a few":                          `"few": want a number of permits from 0 to 2147483647`,
		"limit /a 2147483648":                   `"2147483648": want a number of permits from 0 to 2147483647`,
		"limit --create /b /a":                  "--create and --force need a number",
		"limit --create b /a 1":                 path + `"b": it does not start with a slash`,
		"limit /a 1 -- true":                    "docent limit runs no command: leave out --",
		"counter":                               numbers,
		"counter /a add":                        numbers,
		"counter /a sub 1":                      numbers,
		"counter /a set 1 -o json":              numbers,
		"counter /a get 1":                      numbers,
		"counter a":                             path + `"a": it does not start with a slash`,
		"counter /a set 1.5":                    `"1.5": want an integer of 64 bits`,
		"counter --format int /a":               `--format "int": want count, atomic or text`,
		"counter --create /a set 1":             "--format: want count, atomic or text",
		"counter --create --format text /a":     "--create needs set or add",
		"doctor /a /b":                          "want one path, or none: see docent doctor --help",
		"doctor a":                              path + `"a": it does not start with a slash`,
		"doctor --write a":                      "--write: " + path + `"a": it does not start with a slash`,
		"doctor --write /":                      "--write /: want a node that does not exist",
		"doctor --samples 0":                    "--samples 0: want a number that is positive",
		"doctor --max-nodes 0":                  "--max-nodes 0: want a number that is positive",
		"doctor --wait 0":                       "--wait 0s: want a time that is positive",
		"--session-timeout 1ms lock /a -- true": "new client: WithSessionTimeout: 1ms is not between 100ms and 24h0m0s",
	} {
		code, out, errs := finish(t, append([]string{"--connect", "127.0.0.1:1"}, strings.Fields(line)...)...)
		assert.Equal(t, exitUsage, code, line)
		assert.Empty(t, out)
		assert.Equal(t, "docent: "+want+"\n", errs)
	}
	code, _, errs := finish(t, "lock", "/a", "--", "true")
	assert.Equal(t, exitUsage, code)
	assert.Equal(t, "docent: no servers: give --connect or set DOCENT_CONNECT, as zk1:2181,zk2:2181,zk3:2181\n", errs)
}

func TestCompletionRunsNothing(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"lock:run a command while holding a lock\n": {},
		"--shared": {"lock", "--sh"},
		"--cycles": {"session", "--cy"},
		"--format": {"counter", "--fo"},
		"--write":  {"doctor", "--wr"},
		"limit:show or set the shared limit of a semaphore\n":                {"lim"},
		"break:delete the node of a holder that does not release its lock\n": {"br"},
		"": {"--connect", "127.0.0.1:1", "lock", "/a", "--", "touch"},
	} {
		code, out, errs := finish(t, append(args, completionFlag)...)
		assert.Zero(t, code)
		assert.Contains(t, out, want)
		if want == "" {
			assert.Empty(t, out)
		}
		assert.Empty(t, errs)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "pwsh"} {
		code, out, _ := finish(t, "completion", shell)
		assert.Zero(t, code)
		assert.NotEmpty(t, out, shell)
	}
}

func TestOnlyTheCommandNeedsTheCommandLineLibrary(t *testing.T) {
	t.Parallel()
	const library = "github.com/urfave/cli/v3"
	packages := func(pattern ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, pattern...)...).Output()
		require.NoError(t, err)
		return string(out)
	}
	require.NotContains(t, packages("../../framework/...", "../../recipes/...", "../../retry/...", "../../fence/...",
		"../../zktest/...", "../../examples/...", "../../cmd/zktest"), library)
	require.Contains(t, packages("."), library)
}
