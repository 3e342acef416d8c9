package porting

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/pages"
	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/internal/realzk"
)

const portingPage = "../porting-from-curator.md"

// classRow is a row of the page's table of classes.
type classRow struct {
	classes []string // with the package, such as locks.Lease
	text    string   // what docent has
	anchors []string // of the sections that the row links
}

func TestPageHasEachClassOfCurator(t *testing.T) {
	realzk.Need(t)
	var onPage []string
	for _, row := range classRows(t) {
		onPage = append(onPage, row.classes...)
	}
	require.ElementsMatch(t, peers.CuratorRecipes(t), onPage)
}

func TestEachClassOfCuratorHasAFragmentOrAReason(t *testing.T) {
	page := readFile(t, portingPage)
	rows := classRows(t)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.NotEmpty(t, row.anchors, "%v: no section", row.classes)
		var linked strings.Builder
		for _, anchor := range row.anchors {
			linked.WriteString(section(t, page, anchor))
		}
		if !strings.HasPrefix(row.text, "none") {
			require.True(t, strings.Contains(linked.String(), "<!-- fragment "), "%v: no fragment", row.classes)
		}
	}
}

func classRows(t *testing.T) (rows []classRow) {
	t.Helper()
	table := section(t, readFile(t, portingPage), "every-class-of-curators-recipes")
	name := regexp.MustCompile("`([a-z]+\\.)?(\\w+)`")
	link := regexp.MustCompile(`\]\(#([^)]+)\)`)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		row := classRow{text: strings.TrimSpace(cells[2])}
		inPackage := ""
		for _, match := range name.FindAllStringSubmatch(cells[1], -1) {
			if match[1] != "" {
				inPackage = match[1]
			}
			row.classes = append(row.classes, inPackage+match[2])
		}
		for _, match := range link.FindAllStringSubmatch(cells[2], -1) {
			row.anchors = append(row.anchors, match[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// section returns the section of a page that has the anchor.
func section(t *testing.T, page, anchor string) string {
	t.Helper()
	text := pages.Section(page, anchor)
	require.NotEmpty(t, text, "no section %s", anchor)
	return text
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
