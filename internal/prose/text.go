package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

// A paragraph is prose without a break: its lines are read as one text.
type paragraph []line

type line struct {
	number int
	text   string
}

// words returns the number of words, which are separated by white space and have a letter or a digit.
func (p paragraph) words() int {
	n := 0
	for _, l := range p {
		for _, field := range strings.Fields(l.text) {
			if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
	}
	return n
}

// matches returns the number of matches by the number of the line in which each begins. A match may
// extend over the end of a line.
func (p paragraph) matches(pattern *regexp.Regexp) map[int]int {
	var text strings.Builder
	for _, l := range p {
		text.WriteString(l.text + "\n")
	}
	found := map[int]int{}
	for _, at := range pattern.FindAllStringIndex(text.String(), -1) {
		found[p[strings.Count(text.String()[:at[0]], "\n")].number]++
	}
	return found
}

// goProse returns the comments of a Go file, without directives: a paragraph for each group of
// comments that stand on adjacent lines with no code between them.
func goProse(name, source string) ([]paragraph, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading comments: %w", err)
	}
	var all []paragraph
	for _, group := range file.Comments {
		if p := groupProse(files, group); len(p) > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

func groupProse(files *token.FileSet, group *ast.CommentGroup) paragraph {
	var p paragraph
	for _, comment := range group.List {
		if directive.MatchString(comment.Text) {
			continue
		}
		first := files.PositionFor(comment.Pos(), false).Line // false: whatever a //line directive says
		text := strings.TrimSuffix(comment.Text[2:], "*/")
		for i, s := range strings.Split(text, "\n") {
			p = append(p, line{first + i, s})
		}
	}
	return p
}

// directive matches a comment for a tool, such as //go:build. There is no space after its slashes.
var directive = regexp.MustCompile(`^//(?:[a-z0-9]+:[a-z0-9]|nolint\b|line |extern |export )`)

// markdownProse returns the text of a Markdown page without code blocks in fences, code spans and the
// addresses of links. A heading, an item of a list and a row of a table are paragraphs of their own.
func markdownProse(source string) []paragraph {
	var (
		all   []paragraph
		p     paragraph
		fence string // that has to be closed
	)
	end := func() {
		if len(p) > 0 {
			all = append(all, withoutCode(p))
		}
		p = nil
	}
	for i, s := range strings.Split(source, "\n") {
		inside := fence != ""
		fence = fenceAfter(s, fence)
		if inside || fence != "" || strings.TrimSpace(s) == "" {
			end()
			continue
		}
		if ownParagraph.MatchString(s) {
			end()
		}
		p = append(p, line{i + 1, s})
		if heading.MatchString(s) {
			end()
		}
	}
	end()
	return all
}

var (
	containers   = regexp.MustCompile(`^(?:[\s>]|[-*+]\s|\d+[.)]\s)*`) // of a list or a quotation
	fenceStart   = regexp.MustCompile("^(?:(`{3,})[^`]*|(~{3,}).*)$")
	fenceEnd     = regexp.MustCompile("^[\\s>]*(`{3,}|~{3,})\\s*$")
	heading      = regexp.MustCompile(`^\s*#{1,6}\s`)
	ownParagraph = regexp.MustCompile(`^[\s>]*(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|\|)`)
	address      = regexp.MustCompile(`\]\([^()\s]*\)`)
)

// fenceAfter returns the fence that is open after line s, given the one that was open before it.
func fenceAfter(s, open string) string {
	if open == "" {
		m := fenceStart.FindStringSubmatch(s[len(containers.FindString(s)):])
		if m == nil {
			return ""
		}
		return m[1] + m[2]
	}
	if m := fenceEnd.FindStringSubmatch(s); m != nil && strings.HasPrefix(m[1], open) {
		return ""
	}
	return open
}

// withoutCode takes code spans and addresses of links out of p. A span may extend over the end of a line.
func withoutCode(p paragraph) paragraph {
	texts := make([]string, len(p))
	for i, l := range p {
		texts[i] = l.text
	}
	text := withoutSpans(strings.Join(texts, "\n"))
	text = address.ReplaceAllLiteralString(text, "]")
	clean := make(paragraph, len(p))
	for i, s := range strings.Split(text, "\n") {
		clean[i] = line{p[i].number, s}
	}
	return clean
}

// withoutSpans replaces the code spans of text by spanMark and keeps all ends of lines.
func withoutSpans(text string) string {
	var out strings.Builder
	for text != "" {
		switch {
		case text[0] == '\\' && len(text) > 1:
			out.WriteString(text[:2])
			text = text[2:]
		case text[0] == '`':
			ticks := leadingTicks(text)
			length := spanLength(text, ticks)
			if length == 0 {
				out.WriteString(text[:ticks])
				text = text[ticks:]
				continue
			}
			out.WriteString(spanMark + strings.Repeat("\n", strings.Count(text[:length], "\n")))
			text = text[length:]
		default:
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String()
}

// spanMark is no word and no white space, so that the words on both sides of a span stay apart.
const spanMark = "``"

// spanLength returns the length of the code span that text begins with, 0 if nothing closes it.
func spanLength(text string, ticks int) int {
	for at := ticks; at < len(text); at++ {
		if text[at] != '`' {
			continue
		}
		n := leadingTicks(text[at:])
		at += n
		if n == ticks {
			return at
		}
	}
	return 0
}

func leadingTicks(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }
