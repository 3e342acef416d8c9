package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

const introduction = `# Track record

<!-- Written by test/trackrecord: change its tables and run "make track-record-page". -->

This page lists defects that docent had, and for each of them a test that finds it today.
` + "`make track-record`" + ` shows this. For each defect it takes the mend back, by a patch in
[test/trackrecord/patches](../test/trackrecord/patches). With the patch the test must fail, for the known reason.
Without the patch it must pass. A patch takes back no more than brings the defect back. The commit that is named
has the whole mend and its reason.

| Found by | |
|---|---|
`

const found = `
*Reading* is also written where the commit does not say how the defect was found. Most defects of locks on other
services are not on this page, because their tests need those services.

| Defect | Found by | Mend | Test that fails without it |
|---|---|---|---|
`

const commands = `
To see one of them fail, name its patch:

` + "```sh" + `
make track-record ONLY=late-create
` + "```" + `
`

const mutation = `
## Mutants

` + "`make mutants`" + ` breaks the code in turn: it inverts conditions, moves the limits of comparisons, leaves
statements out, and drops errors. Each such change is a mutant. A mutant is found if
a test that reaches the place fails or does not end. For each other mutant
[explained.txt](../test/mutants/explained.txt) says why it breaks nothing that is promised, or that a test
is missing. The run fails if a mutant is neither found nor explained. Simulations run only four seeds, and
tests that take long are left out, so the whole of the tests finds more mutants than the table says.
Conditions are tried before statements and errors. Files of the locks and of the connection that are not in
the table have not been tried yet.

| File | Mutants | Found | Changes nothing | No test yet | Not tried | Found of those tried |
|---|---|---|---|---|---|---|
`

// scores is the file that "make mutants" writes.
const scores = "test/mutants/score.json"

// score is what became of mutants of a file.
type score struct{ Mutants, Found, Hung, Explained, Open, Unexplained, Untried int }

// renderScores returns the rows of the scores.
func renderScores() (string, error) {
	text, err := os.ReadFile(scores)
	if err != nil {
		return "", err
	}
	all := map[string]map[string]score{} // by file and kind
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	var rows strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var s score
		for _, of := range all[name] {
			s.Mutants, s.Found, s.Explained = s.Mutants+of.Mutants, s.Found+of.Found+of.Hung, s.Explained+of.Explained
			s.Open, s.Unexplained, s.Untried = s.Open+of.Open, s.Unexplained+of.Unexplained, s.Untried+of.Untried
		}
		if s.Untried == s.Mutants {
			continue
		}
		if s.Unexplained > 0 {
			return "", fmt.Errorf("%s has %d mutants that are not explained: see make mutants", name, s.Unexplained)
		}
		fmt.Fprintf(&rows, "| `%s` | %d | %d | %d | %d | %d | %d %% |\n",
			name, s.Mutants, s.Found, s.Explained, s.Open, s.Untried, 100*s.Found/(s.Mutants-s.Untried))
	}
	return rows.String(), nil
}

// render returns the page.
func render(all []defect) (string, error) {
	var page strings.Builder
	page.WriteString(introduction)
	for _, w := range ways {
		fmt.Fprintf(&page, "| %s | %s |\n", w.way, w.means)
	}
	page.WriteString(found)
	for _, d := range all {
		patch := fmt.Sprintf("[%s](../%s/%s.patch)", d.commit, folder, d.name)
		name := strings.NewReplacer("^", "", "$", "").Replace(d.tests)
		tests := fmt.Sprintf("`%s` in `%s`", name, path.Join(d.module, d.folder))
		if d.servers != "" {
			tests += ", on real servers"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", d.text, d.found, patch, tests)
	}
	page.WriteString(commands)
	rows, err := renderScores()
	if err != nil {
		return "", err
	}
	if rows != "" {
		page.WriteString(mutation + rows)
	}
	return page.String(), nil
}
