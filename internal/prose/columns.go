package main

import (
	"regexp"
	"strings"
)

const (
	maxColumns = 120
	tabStop    = 4
)

// columns returns the width of s: one column for each rune, and tab stops in every fourth column.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if r == '\t' {
			n += tabStop - n%tabStop
		} else {
			n++
		}
	}
	return n
}

var (
	url       = regexp.MustCompile(`[a-z]+://[^\s)>"]+`)
	lineStart = regexp.MustCompile(`^(?:[\s>]|//|[-*+]\s|\d+[.)]\s)*`)
)

// tooWide reports whether s is wider than maxColumns and could be wrapped. URLs count no columns. A
// single word, a row of a Markdown table and a directive cannot be wrapped.
func tooWide(s string, markdown bool) bool {
	if columns(url.ReplaceAllString(s, "")) <= maxColumns {
		return false
	}
	if markdown && strings.HasPrefix(strings.TrimLeft(s, " >"), "|") || !markdown && directive.MatchString(s) {
		return false
	}
	return strings.ContainsAny(s[len(lineStart.FindString(s)):], " \t")
}
