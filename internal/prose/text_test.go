package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// found is what a text has: its words, and the pronouns by the number of the line.
type found struct {
	words    int
	pronouns map[int]int
}

func foundIn(prose []paragraph) found {
	f := found{pronouns: map[int]int{}}
	for _, p := range prose {
		f.words += p.words()
		for number, n := range p.matches(pronouns) {
			f.pronouns[number] += n
		}
	}
	return f
}

func TestCommentsOfGoFilesAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   found
	}{
		"none":    {"package p", found{0, map[int]int{}}},
		"package": {"// Package p is for somebody.\npackage p", found{5, map[int]int{1: 1}}},
		"at the end": {
			"package p\n\nvar a int // whose\nvar b int // of whom",
			found{3, map[int]int{3: 1, 4: 1}},
		},
		"inside a body":    {"package p\n\nfunc f() {\n\t// nobody\n}", found{1, map[int]int{4: 1}}},
		"block":            {"package p\n\n/*\nwho\n\nand whoever's\n*/", found{3, map[int]int{4: 1, 6: 1}}},
		"block in a line":  {"package p\n\nfunc f(a /* who */ int, b /* whom */ int) {}", found{2, map[int]int{3: 2}}},
		"over two lines":   {"package p\n\n// There is no\n// one, and no-one.", found{6, map[int]int{3: 1, 4: 1}}},
		"two groups":       {"package p\n\n// There is no\n\n// one.", found{4, map[int]int{}}},
		"not across code":  {"package p\n\nvar a int // no\nvar b int // one", found{2, map[int]int{}}},
		"string":           {`package p; const s = "// who" // whom`, found{1, map[int]int{1: 1}}},
		"raw string":       {"package p\n\nconst s = `\n// who\n/* whom */\n`", found{0, map[int]int{}}},
		"rune":             {`package p; const r = '"' // who "`, found{1, map[int]int{1: 1}}},
		"string in it":     {"package p\n\n// \"who\" and `whom`", found{3, map[int]int{3: 2}}},
		"slashes in block": {"package p\n\n/* // who */", found{1, map[int]int{3: 1}}},
		"directives": {
			"//go:build who\n\npackage p\n\n//nolint:all // who\n//lint:ignore SA1019 who\n" +
				"//export who\n//line who.go:7\n// whom",
			found{1, map[int]int{9: 1}},
		},
		"no directives": {"package p\n\n// go:x who\n//who\n//nolinter: who", found{5, map[int]int{3: 1, 4: 1, 5: 1}}},
		"indented":      {"package p\n\n//   - who\n//\twhom()", found{2, map[int]int{3: 1, 4: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			prose, err := goProse("p.go", c.source)
			require.NoError(t, err)
			require.Equal(t, c.want, foundIn(prose))
		})
	}
}

func TestGoFileThatDoesNotParseIsAnError(t *testing.T) {
	_, err := goProse("broken.go", "package p\n\nfunc {")
	require.ErrorContains(t, err, "broken.go:3")
}

func TestTextOfMarkdownIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   found
	}{
		"empty":              {"", found{0, map[int]int{}}},
		"heading":            {"# Who\n\nis it?", found{3, map[int]int{1: 1}}},
		"fence":              {"who\n```sh\nwhom\n```\nwhose", found{2, map[int]int{1: 1, 5: 1}}},
		"fence of tildes":    {"~~~\nwho\n```\nwhom\n~~~\nwhose", found{1, map[int]int{6: 1}}},
		"longer fence":       {"````md\n```\nwho\n```\n````\nwhose", found{1, map[int]int{6: 1}}},
		"info is no end":     {"```\nwho\n```sh\nwhom\n```\nwhose", found{1, map[int]int{6: 1}}},
		"fence never closed": {"whose\n```\nwho\n\nwhom", found{1, map[int]int{1: 1}}},
		"no fence":           {"``` who ``` whom", found{1, map[int]int{1: 1}}},
		"nested lists": {
			"- who\n  - whom\n\n    whose\n    1. nobody\n       ```\n       somebody\n       ```\n       anybody\n" +
				"- ```\n  who\n  ```\n- everyone",
			found{7, map[int]int{1: 1, 2: 1, 4: 1, 5: 1, 9: 1, 13: 1}},
		},
		"quotation":            {"> who\n> ```\n> whom\n> ```\n> whose", found{2, map[int]int{1: 1, 5: 1}}},
		"code":                 {"a `who` b ``whom ` whose`` c", found{3, map[int]int{}}},
		"code over lines":      {"a `who\nwhom` whose", found{2, map[int]int{2: 1}}},
		"code keeps apart":     {"no `x` one", found{2, map[int]int{}}},
		"tick without a twin":  {"a ` who\n\n` whom", found{3, map[int]int{1: 1, 3: 1}}},
		"ticks of two items":   {"- a ` who\n- b ` whom", found{4, map[int]int{1: 1, 2: 1}}},
		"tick with backslash":  {"\\` who \\` `whom`", found{1, map[int]int{1: 1}}},
		"table":                {"| a | b |\n|---|---|\n| who | `whom` |", found{3, map[int]int{3: 1}}},
		"link":                 {"[whose](who/is-who.md#whom) and [who][whom]", found{3, map[int]int{1: 3}}},
		"over two lines":       {"there is no\none", found{4, map[int]int{1: 1}}},
		"not over a paragraph": {"there is no\n\none", found{4, map[int]int{}}},
		"not over an item":     {"- there is no\n- one", found{4, map[int]int{}}},
		"not over a heading":   {"# There is no\none", found{4, map[int]int{}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, foundIn(markdownProse(c.source)))
		})
	}
}

func TestPronounsAreWholeWordsInAnyCase(t *testing.T) {
	for text, want := range map[string]int{
		"who whom whose whoever whomever whosever whosoever":  7,
		"somebody anybody everybody nobody":                   4,
		"someone anyone everyone noone no one no-one No  One": 7,
		"whichever one": 1,
		"WHO Nobody's (whose) who's 'who' **whom**":                          6,
		"whole whoa who_is someones WHOs antibody one no other none nobodys": 0,
		"which that one whatever whichever":                                  0,
	} {
		total := 0
		for _, n := range (paragraph{{1, text}}).matches(pronouns) {
			total += n
		}
		require.Equal(t, want, total, text)
	}
}

func TestWordsHaveALetterOrADigit(t *testing.T) {
	require.Equal(t, 6, paragraph{{1, "A lock's hand-off - at 3 * = …"}, {2, "   "}, {3, "| über |"}}.words())
}
