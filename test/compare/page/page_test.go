package page

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/safety"
	"github.com/docent-zk/docent/test/compare/speed"
)

// one returns the results of one row.
func one(plain int) *Results {
	return &Results{
		Safety: []safety.Row{{Kind: "docent", Fault: safety.Pause, Plain: &plain, Free: 4 * time.Second},
			{Kind: "docent", Fault: safety.ClockAhead, Reason: "not run: a reason"}},
		Speed: []speed.Row{{Kind: "docent", Alone: 1234}},
	}
}

func TestClaimIsALinkToARowThatWasRun(t *testing.T) {
	w := writer{one(0), english}
	text, err := w.claim("docent", "pause", "plain", 0, "a pause")
	require.NoError(t, err)
	require.Equal(t, "[a pause](#docent-pause)", text)
	_, err = w.claim("docent", "clock-ahead", "plain", 0, "a clock")
	require.ErrorContains(t, err, "not run: a reason")
	_, err = w.claim("docent", "wipe", "plain", 0, "a restart")
	require.ErrorContains(t, err, "not in the results")
	_, err = w.claim("docent", "pause", "token", 0, "a pause")
	require.ErrorContains(t, err, "token", "the row has no such number")
}

func TestClaimThatTheRowContradictsIsAnError(t *testing.T) {
	w := writer{one(1), english}
	_, err := w.claim("docent", "pause", "plain", 0, "a pause")
	require.ErrorContains(t, err, "docent, pause: plain is 1, and the page claims 0")
	_, err = w.none("docent", "plain", "no update")
	require.ErrorContains(t, err, "docent, pause")
}

func TestNumbersOfSpeedAreLinks(t *testing.T) {
	w := writer{one(0), english}
	text, err := w.speed("docent", "alone")
	require.NoError(t, err)
	require.Equal(t, "[1234](#speed-docent)", text)
	_, err = w.speed("docent", "p50")
	require.ErrorContains(t, err, "no p50")
	_, err = w.speed("kazoo", "alone")
	require.ErrorContains(t, err, "not measured")
}

func TestEachLinkOfATableHasItsRow(t *testing.T) {
	w := writer{one(0), english}
	require.Contains(t, w.summary().Markdown(), "[0](#docent-pause)")
	sections := w.sections()
	require.Len(t, sections, 1)
	require.Contains(t, sections[0].Table.Markdown(), `<a id="docent-pause"></a>pause | 0 (never) | - | - |`)
	require.Equal(t, [][]string{{"docent", "clock of a program", "a reason"}}, w.absent().Rows)
}

func TestAllKindsAndFaultsHaveWords(t *testing.T) {
	for name, w := range languages {
		for _, k := range peer.Kinds {
			require.NotEmpty(t, w.about[k.Name], "%s: %s", name, k.Name)
		}
		for _, f := range safety.Faults {
			require.NotEmpty(t, w.faults[f], "%s: %s", name, f)
		}
	}
}

var anchors = regexp.MustCompile(`\]\(#([^)]*)\)`)

// The pages in this repository are those of its results.
func TestPagesAreOfTheResults(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	r, err := Load(docs)
	require.NoError(t, err)
	for name, language := range Pages {
		want, err := r.Text(language)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "cd test/compare && go run . -page")
		for _, link := range anchors.FindAllStringSubmatch(want, -1) {
			require.Contains(t, want, `id="`+link[1]+`"`, name)
		}
	}
	for _, row := range r.Safety {
		require.Empty(t, safety.Check(row))
	}
}

func TestPlotsAreDrawn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, one(0).plot(dir))
	for _, p := range plots {
		drawn, err := os.ReadFile(filepath.Join(dir, p.File))
		require.NoError(t, err)
		require.Contains(t, string(drawn), "<svg")
	}
}
