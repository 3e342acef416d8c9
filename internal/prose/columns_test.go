package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnsAreRunesAndTabStops(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "größer": 6, "\t": 4, "\t\ta": 9, "ab\tc": 5, "abcd\te": 9,
	} {
		require.Equal(t, want, columns(s), "%q", s)
	}
}

func TestLinesThatAreTooWide(t *testing.T) {
	words := func(columns int) string { return strings.Repeat("ab ", columns)[:columns-1] + "c" }
	long := strings.Repeat("x", 130)
	link := "https://example.org/" + long
	for name, c := range map[string]struct {
		text             string
		inGo, inMarkdown bool
	}{
		"at the limit":        {words(120), false, false},
		"over it":             {words(121), true, true},
		"umlauts at it":       {strings.ReplaceAll(words(120), "a", "ä"), false, false},
		"tab at it":           {"\t" + words(116), false, false},
		"tab over it":         {"\t" + words(117), true, true},
		"one word":            {long, false, false},
		"one word, indented":  {"\t\t" + long, false, false},
		"one word, commented": {"\t// " + long, false, false},
		"one word in a list":  {"  - " + long, false, false},
		"two words":           {long + " x", true, true},
		"URL":                 {"see " + link + " and more", false, false},
		"link":                {"see [this](" + link + "), and more", false, false},
		"URL and text":        {words(119) + " " + link + " ab", true, true},
		"row":                 {"| " + words(121) + " |", true, false},
		"row in a list":       {"  | " + words(121) + " |", true, false},
		"directive":           {"//go:build " + words(121), false, true},
		"after a space":       {"// go:build " + words(121), true, true},
	} {
		require.Equal(t, c.inGo, tooWide(c.text, false), "%s in Go", name)
		require.Equal(t, c.inMarkdown, tooWide(c.text, true), "%s in Markdown", name)
	}
}
