package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/overlay"
)

// atRoot lets a test run in the root of the repository, as the command does.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

func TestPageIsThatOfTheTables(t *testing.T) {
	atRoot(t)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := render(defects)
	require.NoError(t, err)
	require.Equal(t, want, string(text), "run make track-record-page")
}

func TestEachDefectHasAPatchThatApplies(t *testing.T) {
	atRoot(t)
	names := map[string]bool{}
	for _, d := range defects {
		require.False(t, names[d.name], d.name)
		names[d.name] = true
		for _, field := range []string{d.text, string(d.found), d.commit, d.folder, d.tests, d.says} {
			require.NotEmpty(t, field, d.name)
		}
		_, err := patched(filepath.Join(folder, d.name+".patch"))
		require.NoError(t, err)
	}
	patches, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Len(t, patches, len(defects), "a patch belongs to no defect")
}

func TestPatchIsAppliedWhereItsLinesAre(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
	write("a.go", "one\ntwo\nthree\ntwo\nfour\n")
	write("p", "text\n--- a/a.go\n+++ b/a.go\n@@ @@\n two\n-three\n+3\n@@ @@\n-four\n+4\n")
	files, err := patched("p")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.go": "one\ntwo\n3\ntwo\n4\n"}, files)
	for patch, says := range map[string]string{
		"--- a/a.go\n+++ b/a.go\n@@ @@\n-five\n":    "a.go has these lines 0 times:\nfive",
		"--- a/a.go\n+++ b/a.go\n@@ @@\n-two\n":     "a.go has these lines 2 times:\ntwo",
		"--- a/gone.go\n+++ b/gone.go\n@@ @@\n-x\n": "does not apply any more: open gone.go",
		"@@ @@\n-two\n": "a hunk has no file",
		"text\n":        "there is no hunk",
	} {
		write("p", patch)
		_, err := patched("p")
		require.ErrorContains(t, err, says)
	}
}

// TestOnlyTheExpectedFailureCounts takes a mend back in a module of its own.
func TestOnlyTheExpectedFailureCounts(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := overlay.Dir{Path: t.TempDir()}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(strings.TrimSpace(string(cache)), filepath.Join(dir.Path, "cache"))) // to save time
	require.NoError(t, os.MkdirAll(folder, 0o755))
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
	write("go.mod", "module m\n\ngo 1.25\n")
	write("a.go", "package m\n\nfunc one() int {\n\treturn 1\n}\n")
	write("a_test.go", `package m

import "testing"

func TestOne(t *testing.T) {
	if one() != 1 {
		t.Fatal("it is not one")
	}
}

func TestNothing(t *testing.T) {}

func TestWrong(t *testing.T) { t.Fatal("wrong") }
`)
	patch := func(line string) {
		write(filepath.Join(folder, "p.patch"), "--- a/a.go\n+++ b/a.go\n@@ @@\n-\treturn 1\n+\t"+line+"\n")
	}
	verify := func(tests, says string) error {
		return defect{name: "p", folder: ".", tests: tests, says: says}.verify(t.Context(), dir, true)
	}
	patch("return 2")
	require.NoError(t, verify("^TestOne$", "it is not one"))
	require.ErrorContains(t, verify("^TestOne$", "it is two"), `does not say "it is two"`)
	require.ErrorContains(t, verify("^TestNothing$", ""), "passes though the mend is taken back")
	require.ErrorContains(t, verify("^TestMissing$", ""), "there is no test ^TestMissing$")
	require.ErrorContains(t, verify("^TestWrong$", "wrong"), "fails without the patch, too")
	patch("return x")
	require.ErrorContains(t, verify("^TestOne$", ""), "does not compile with the patch")
	text, err := os.ReadFile("a.go")
	require.NoError(t, err)
	require.Contains(t, string(text), "return 1", "the file was changed")
}

func TestCommitsOfMendsAreThere(t *testing.T) {
	if out, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output(); err != nil ||
		strings.TrimSpace(string(out)) != "false" {
		t.Skip("the history is not here")
	}
	for _, d := range defects {
		require.NoError(t, exec.Command("git", "cat-file", "-e", d.commit+"^{commit}").Run(), d.commit)
	}
}
