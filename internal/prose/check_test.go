package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These are given up. They are in two pieces, so that this file passes.
const (
	old     = "ten" + "ure"
	another = "neighb" + "ours"
)

func TestClassesOfFiles(t *testing.T) {
	for path, want := range map[string]string{
		"retry/do.go":                          "library",
		"cmd/zktest/main.go":                   "library",
		"contrib/otel/otel.go":                 "library",
		"framework/internal/wire/conn.go":      "library",
		"zktest/internal/tree/tree.go":         "library",
		"testing/a.go":                         "library",
		"retry/do_test.go":                     "tests",
		"examples/mutex/main_test.go":          "tests",
		"test/bench/main.go":                   "tests",
		"internal/prose/main.go":               "tests",
		"recipes/internal/contracttest/run.go": "tests",
		"examples/mutex/main.go":               "examples",
		"docs/porting/doc.go":                  "examples",
		"README.md":                            "docs",
		"CHANGELOG.md":                         "docs",
		"docs/guarantees.md":                   "docs",
		"docs/adr/0001-a.md":                   "none",
		"test/README.md":                       "docs",
		"retry/testdata/a.go":                  "none",
		"testdata/a.md":                        "none",
		"scripts/a.sh":                         "none",
		"go.sum":                               "none",
	} {
		got := "none"
		if c, ok := classOf(path); ok {
			got = c.String()
		}
		require.Equal(t, want, got, path)
	}
}

func TestProseFailsAtTheLimitOfItsClassAndPassesBelow(t *testing.T) {
	for path, limit := range map[string]struct{ pronouns, words int }{
		"a.go":          {1, 1000},
		"a.md":          {3, 2000},
		"a_test.go":     {2, 1000},
		"examples/a.go": {2, 1000},
	} {
		t.Run(path, func(t *testing.T) {
			at := prose(path, limit.pronouns, limit.words)
			below := prose(path, limit.pronouns, limit.words+1)

			out, status := runOn(t, map[string]string{path: at})
			require.Equal(t, 1, status)
			require.Contains(t, out, "exceeded")
			require.Contains(t, out, fmt.Sprintf("%5d  %s\n", limit.pronouns, path))

			out, status = runOn(t, map[string]string{path: below})
			require.Zero(t, status, out)
			require.NotContains(t, out, "exceeded")
			require.NotContains(t, out, path)
		})
	}
}

func TestOneClassDoesNotMakeUpForAnother(t *testing.T) {
	out, status := runOn(t, map[string]string{"a.go": prose("a.go", 2, 10), "b.md": prose("b.md", 1, 100_000)})
	require.Equal(t, 1, status)
	require.Contains(t, out, "the worst of 1 files:\n    2  a.go\n")
	require.NotContains(t, out, "b.md")
}

func TestNoPronounPassesWithoutAnyWords(t *testing.T) {
	out, status := runOn(t, map[string]string{"a.go": "package a\n"})
	require.Zero(t, status, out)
}

func TestLongLineFails(t *testing.T) {
	for _, path := range []string{"a.go", "a.md"} {
		limit := "// " + strings.Repeat("abc ", 29) + "a"
		require.Len(t, limit, maxColumns)
		_, status := runOn(t, map[string]string{path: "package a\n\n" + limit + "\n"})
		require.Zero(t, status)

		out, status := runOn(t, map[string]string{path: "package a\n\n" + limit + "b\n"})
		require.Equal(t, 1, status)
		require.Contains(t, out, path+":3: // abc")
	}
	out, status := runOn(t, map[string]string{"a.txt": strings.Repeat("abc ", 100)})
	require.Zero(t, status, out)
}

func TestWordThatWasGivenUpFails(t *testing.T) {
	for name, c := range map[string]struct {
		path, text string
		fails      bool
	}{
		"comment":               {"a.go", "package a\n\n// " + old, true},
		"identifier":            {"a.go", "package a\n\nvar " + old + " int", true},
		"string":                {"a.go", "package a\n\nconst s = \"a " + old + "\"", true},
		"any case":              {"a.go", "package a\n\n// " + strings.ToUpper(old), true},
		"part of an identifier": {"a.go", "package a\n\nvar my" + old + ", " + old + "_1, " + old + "s int", false},
		"page":                  {"docs/a.md", "`" + another + "`", true},
		"other kinds":           {"scripts/a.sh", "echo " + another + "-1", true},
		"data of a test":        {"a/testdata/b.txt", old, true},
		"binary":                {"a.bin", "\x00 " + old, false},
		"record of a decision":  {"docs/adr/0001-a.md", old, false},
		"changelog":             {"CHANGELOG.md", old, false},
		"another changelog":     {"docs/CHANGELOG.md", old, true},
		"table":                 {"internal/prose/words.go", "package main\n\nvar " + old + " int", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := runOn(t, map[string]string{c.path: c.text})
			require.Equal(t, c.fails, status == 1, out)
			require.Equal(t, c.fails, strings.Contains(out, c.path+":"), out)
		})
	}
}

func TestNothingIsCountedInRecordsOfDecisions(t *testing.T) {
	text := "who\n" + old + "\n" + strings.Repeat("abc ", 100) + "\n"
	out, status := runOn(t, map[string]string{"docs/adr/0001-a.md": text})
	require.Zero(t, status, out)
	require.NotContains(t, out, "0001-a.md")

	out, status = runOn(t, map[string]string{"docs/a.md": text})
	require.Equal(t, 1, status)
	for _, line := range []string{"docs/a.md:1: who", "docs/a.md:2: " + old, "docs/a.md:3: abc"} {
		require.Contains(t, out, line)
	}
}

func TestReportDoesNotFail(t *testing.T) {
	files := map[string]string{"a.md": "who\n" + old + "\n"}
	out, status := runOn(t, files)
	require.Equal(t, 1, status)
	report, status := runOn(t, files, "-report")
	require.Zero(t, status)
	require.Equal(t, out, report)
	require.Contains(t, report, "a.md:1: who\n")
	require.Contains(t, report, "a.md:2: "+old+"\n")
}

func TestWorstComeFirst(t *testing.T) {
	files := map[string]string{"c.md": "who, whom,\nwhose\n"}
	for _, name := range []string{"a.md", "b.md", "d.md"} {
		files[name] = "who\n"
	}
	out, _ := runOn(t, files, "-worst", "2")
	require.Contains(t, out, "the worst of 4 files:\n    3  c.md\n    1  a.md\n")
	require.Contains(t, out, "the worst of 5 lines:\nc.md:1: who, whom,\nc.md:2: whose\n")
	require.NotContains(t, out, "b.md")
}

func TestOnlyFilesThatGitTracksAreRead(t *testing.T) {
	root := write(t, map[string]string{
		"a.md": "a", "sub/b ü.md": "b", "new.md": "who", "gone.md": "who", "whole/c.md": "c",
	})
	repository(t, root, "a.md", "sub/b ü.md", "gone.md", "whole/c.md")
	require.NoError(t, os.Remove(filepath.Join(root, "gone.md")))

	paths, err := files(root)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a.md", "sub/b ü.md", "gone.md", "whole/c.md"}, paths)

	var out bytes.Buffer
	require.Zero(t, run([]string{"-root", root}, &out, &out), out.String())

	paths, err = files(filepath.Join(root, "sub"))
	require.NoError(t, err)
	require.Equal(t, []string{"b ü.md"}, paths)
}

func TestLinksAreNotFollowed(t *testing.T) {
	root := write(t, map[string]string{"a.md": "a"})
	target := write(t, map[string]string{"b.md": "who"})
	require.NoError(t, os.Symlink(filepath.Join(target, "b.md"), filepath.Join(root, "b.md")))
	require.NoError(t, os.Symlink(target, filepath.Join(root, "folder.md")))
	repository(t, root, ".")
	var out bytes.Buffer
	require.Zero(t, run([]string{"-root", root}, &out, &out), out.String())
}

func TestAllFilesAreReadWithoutARepository(t *testing.T) {
	root := write(t, map[string]string{"a.md": "a", "sub/b.md": "b", "sub/.git/c.md": "who"})
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(root))
	check := func() {
		paths, err := files(root)
		require.NoError(t, err)
		slices.Sort(paths)
		require.Equal(t, []string{"a.md", "sub/b.md"}, paths)
	}
	check()
	t.Setenv("PATH", "") // without git
	check()
}

func TestWhatCannotBeCheckedIsAnError(t *testing.T) {
	for name, root := range map[string]string{
		"no files":          write(t, nil),
		"no folder":         filepath.Join(t.TempDir(), "none"),
		"Go does not parse": write(t, map[string]string{"a.go": "package"}),
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run([]string{"-root", root, "-report"}, &out, &errs), name)
		require.Contains(t, errs.String(), "prose: ", name)
		require.Empty(t, out.String(), name)
	}
	var out, errs bytes.Buffer
	require.Equal(t, 2, run([]string{"-unknown"}, &out, &errs))
}

// prose is a file with words in comments or text, some of which are pronouns.
func prose(path string, pronouns, words int) string {
	start, prefix := "", ""
	if strings.HasSuffix(path, ".go") {
		start, prefix = "package a\n\n", "// "
	}
	return start + strings.Repeat(prefix+"who\n", pronouns) + strings.Repeat(prefix+"word\n", words-pronouns)
}

// runOn runs the program on a tree with these files and returns its output and exit status.
func runOn(t *testing.T, files map[string]string, args ...string) (string, int) {
	root := write(t, files)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(root))
	var out, errs bytes.Buffer
	status := run(append(args, "-root", root), &out, &errs)
	require.Equal(t, status != 0, errs.Len() > 0, errs.String())
	return out.String(), status
}

// write returns a new folder with these files.
func write(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for path, content := range files {
		file := filepath.Join(root, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	return root
}

// repository makes a git repository of root, which tracks paths.
func repository(t *testing.T, root string, paths ...string) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // of a hook that runs the test
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	for _, args := range [][]string{{"init", "-q"}, append([]string{"add", "--"}, paths...)} {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
