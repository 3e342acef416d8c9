package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	recorded = "testdata/inprocess.json"
	onReal   = "testdata/real.json"
)

// made returns the page of two recorded runs.
func made(t *testing.T, inProcess, actual string) (page string, printed string, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.md")
	var shown strings.Builder
	err = report(settings{inProcess, actual, "testdata/tests", out, false}, &shown)
	content, readErr := os.ReadFile(out)
	require.True(t, readErr == nil || errors.Is(readErr, fs.ErrNotExist), "%v", readErr)
	return string(content), shown.String(), err
}

func TestPageHasATableForEachPainWithTests(t *testing.T) {
	page, printed, err := made(t, recorded, onReal)
	require.NoError(t, err)
	require.Empty(t, printed)
	require.Contains(t, page, `
## P1: The lock is lost and its holder does not know

| Scenario | Test | In process | Real server |
|---|---|---|---|
| A hold ends within 3 s, whatever a\|b says. | `+"`TestP01_HoldEnds`"+` | passes | passes |
| Two of three cases can be had everywhere. | `+"`TestP01_Cases`"+` | passes, 3 cases | passes, 2 cases; 1 not there |

## P26: Setting it up is harder than it should be

| Scenario | Test | In process | Real server |
|---|---|---|---|
| A wrong address is an error. | `+"`TestP26_Addresses`"+` | passes | not there: real servers have no wrong address |

## Not here

- P2, No token`)
	require.Contains(t, page, "\n- P18, The end of the sequence counter lets two clients hold one lock: "+
		"see TestContract of recipes/mutex.\n")
	require.NotContains(t, page, "P1,")
}

func TestPageShowsFailuresAndTheyArePrinted(t *testing.T) {
	page, printed, err := made(t, "testdata/failing.json", onReal)
	require.EqualError(t, err, "failed in process: TestP26_Addresses, TestP26_Addresses/a")
	require.Contains(t, page, "| `TestP26_Addresses` | fails, 1 of 2 cases | not there")
	require.Contains(t, printed, "--- TestP26_Addresses/a, in process\n")
	require.Contains(t, printed, "not like this\n")
	require.NotContains(t, printed, "TestP01", "the output of passed tests is not printed")
}

func TestRunThatFailsOutsideOfItsTestsIsAFailure(t *testing.T) {
	_, printed, err := made(t, recorded, "testdata/leaking.json")
	require.EqualError(t, err, "failed on the real server, but no test did")
	require.Contains(t, printed, "left running\n")
}

func TestThereIsNoPageOfTestsThatDidNotRun(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/broken.json": "undefined: y\n",
		"testdata/cut.json":    "--- TestP01_Cases/2, in process\n",
		os.DevNull:             "",
	} {
		page, printed, err := made(t, file, onReal)
		require.Empty(t, page, file)
		require.ErrorContains(t, err, "failed in process", file)
		require.ErrorContains(t, err, "TestP26_Addresses did not run in process", file)
		require.Contains(t, printed, want, file)
	}
	_, _, err := made(t, recorded, "testdata/none.json")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCheckWritesNothingAndReportsWhereThePageDiffers(t *testing.T) {
	out := filepath.Join(t.TempDir(), "page.md")
	s := settings{recorded, onReal, "testdata/tests", out, true}
	var printed strings.Builder
	require.ErrorContains(t, report(s, &printed), "run make acceptance-page", "there is none")
	require.NoFileExists(t, out)

	page, _, err := made(t, recorded, onReal)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(out, []byte(page), 0o600))
	require.NoError(t, report(s, &printed))

	wrong := strings.Replace(page, "| passes, 3 cases |", "| passes, 4 cases |", 1)
	require.NoError(t, os.WriteFile(out, []byte(wrong), 0o600))
	err = report(s, &printed)
	require.ErrorContains(t, err, "does not match the runs, from line ")
	require.ErrorContains(t, err, "passes, 4 cases")
	require.ErrorContains(t, err, "passes, 3 cases")
	content, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, wrong, string(content))

	require.NoError(t, os.WriteFile(out, []byte(page+"\nmore"), 0o600))
	require.ErrorContains(t, report(s, &printed), "want:      (its end)")
	s.inProcess = "testdata/failing.json"
	require.ErrorContains(t, report(s, &printed), "failed in process: TestP26_Addresses")
}

func TestTestsThatCannotBeOnThePageAreErrors(t *testing.T) {
	for source, want := range map[string]string{
		"// A thing holds.\nfunc TestThing(t *testing.T) {}": "TestThing is not named after a pain",
		"// A thing holds.\nfunc TestP27_Thing(t *testing.T) {}": "TestP27_Thing is named after a pain that " +
			"does not exist",
		"func TestP01_Thing(t *testing.T) {}": "TestP01_Thing has no doc comment",
		"func TestP01_Thing(":                 "expected",
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "x_test.go"), []byte("package x\n\n"+source), 0o600))
		_, err := readScenarios(folder)
		require.ErrorContains(t, err, want)
	}
	_, err := readScenarios(t.TempDir())
	require.ErrorContains(t, err, "there are no tests")
}

func TestRunOfOtherTestsIsAnError(t *testing.T) {
	r, err := readRun("in process", recorded)
	require.NoError(t, err)
	require.EqualError(t, r.complete([]scenario{{1, "TestP01_HoldEnds", ""}, {1, "TestP01_Cases", ""}}),
		"TestP26_Addresses ran in process, but there is no such test")
}

func TestLinesThatAreNoEventsArePrintedWhenARunFails(t *testing.T) {
	r, err := parseRun("in process", strings.NewReader("go: no such thing\n{\"Action\":\"fail\"}"))
	require.NoError(t, err)
	var shown strings.Builder
	require.EqualError(t, r.failure(&shown), "failed in process, but no test did")
	require.Contains(t, shown.String(), "go: no such thing\n")
}

func TestReasonsOfSkippedTests(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   T\n    p_test.go:1: in-process only: real servers cannot\n" +
			"--- SKIP: T\n": "real servers cannot",
		"    x_test.go:2: talk\n    p_test.go:1: real servers only: it takes a disk: " +
			"a slow one\n": "it takes a disk: a slow one",
		"    p_test.go:1: needs Java\n": "needs Java",
		"--- SKIP: T\n":                 "no reason given",
	} {
		skipped := &test{end: "skip"}
		skipped.output.WriteString(output)
		require.Equal(t, want, skipped.reason())
	}
}
