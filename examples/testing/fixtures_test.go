package fixtures

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

const (
	page    = "../../docs/testing.md"
	timeout = 4 * time.Minute
)

// build builds the command zktest and returns the file.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zktest.exe")
	output, err := exec.Command("go", "build", "-o", file, "../../cmd/zktest").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return file
}

// runs requires that a command exits with 0, and returns what it prints.
func runs(t *testing.T, command []string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), env...), 10*time.Second
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return string(output)
}

func TestJUnitTestsRun(t *testing.T) {
	realzk.Need(t)
	t.Parallel()
	output := runs(t, peers.JUnit(t, "java/*.java"), "ZKTEST="+build(t))
	assert.Regexp(t, `\[ +2 tests successful +\]`, output)
}

func TestPytestsRunAsInCI(t *testing.T) {
	realzk.Need(t)
	t.Parallel()
	output := runs(t, []string{"./ci.sh"}, "VERSION=", "PYTHON="+peers.Pytest(t))
	assert.Contains(t, output, "2 passed")
}

// The session on the page is run. A line with $ starts the program, a line with > is a command, and all
// others are answers.
func TestCommandsAreAnsweredAsShown(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(readFile(t, "commands.txt")), "\n")
	start, found := strings.CutPrefix(lines[0], "$ zktest ")
	require.True(t, found, lines[0])
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	const shown, free = "127.0.0.1:2181", "127.0.0.1:0"
	cmd := exec.CommandContext(ctx, build(t), strings.Fields(strings.Replace(start, shown, free, 1))...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	answers, address := bufio.NewScanner(out), ""
	for _, line := range lines[1:] {
		if command, found := strings.CutPrefix(line, "> "); found {
			_, err := io.WriteString(in, command+"\n")
			require.NoError(t, err)
			continue
		}
		require.True(t, answers.Scan(), "no answer %q", line)
		answer := answers.Text()
		if address == "" {
			address = answer[strings.LastIndex(answer, " ")+1:]
		}
		assert.Equal(t, line, strings.ReplaceAll(answer, address, shown))
	}
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

// block matches code on the page, with the name of its file.
var block = regexp.MustCompile("(?m)^<!-- (\\S+) -->\n```\\w*\n((?s:.*?))^```$")

func TestPageShowsTheFilesAsTheyAre(t *testing.T) {
	text := readFile(t, page)
	blocks := block.FindAllStringSubmatch(text, -1)
	require.Equal(t, strings.Count(text, "\n```"), 2*len(blocks), "a block of code has no file name")
	var shown []string
	for _, b := range blocks {
		name, code := b[1], b[2]
		assert.Equal(t, readFile(t, name), code, name)
		shown = append(shown, name)
	}
	slices.Sort(shown)
	assert.Equal(t, files(t), shown, "the files, and the files that the page shows")
}

// files returns the files that readers use.
func files(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && name != "doc.go" && name != "fixtures_test.go" {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(t, err)
	slices.Sort(names)
	return names
}

func TestLinksOfThePageHaveTargets(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`).FindAllStringSubmatch(readFile(t, page), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		if !strings.HasPrefix(link[1], "https://") {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), link[1]))
			assert.NoError(t, err)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
