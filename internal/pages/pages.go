// Package pages reads Markdown pages for the tests that compare them with code, with the files they
// link to, and with each other.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Block is a block of code on a page.
type Block struct {
	Name     string // of its marker, a comment on the line above; may be empty
	Language string // may be empty
	Code     string
}

var (
	block   = regexp.MustCompile("(?m)(?:^<!-- (?:fragment )?(\\S+) -->\n)?^```(\\w*)\n((?s:.*?))^```$")
	heading = regexp.MustCompile(`(?m)^(#+) (.*)$`)
	span    = regexp.MustCompile("`([^`]+)`")
	row     = regexp.MustCompile(`(?m)^ *\|`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	image   = regexp.MustCompile(`<(?:img|a)[^>]* (?:src|href)="([^"]+)"`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	begin   = regexp.MustCompile(`(?m)^[ \t]*// fragment `)
	region  = regexp.MustCompile(`(?m)^[ \t]*// fragment (\S+)\n((?s:.*?))^[ \t]*// end$`)
	indent  = regexp.MustCompile(`^[ \t]*`)
)

// Blocks returns the blocks of code of a page in their order. Each begins and ends at the beginning of
// a line.
func Blocks(text string) ([]Block, error) {
	var all []Block
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		all = append(all, Block{b[1], b[2], b[3]})
	}
	if n := strings.Count(text, "```"); n != 2*len(all) {
		return nil, fmt.Errorf("%d fences for %d blocks of code", n, len(all))
	}
	return all, nil
}

// Shown returns the code of a language on a page, by the names of the fragments. Each block must have
// a name of its own.
func Shown(text, language string) (map[string]string, error) {
	blocks, err := Blocks(text)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, b := range blocks {
		switch _, twice := found[b.Name]; {
		case b.Language != language:
			continue
		case b.Name == "":
			return nil, fmt.Errorf("a block without a marker:\n%s", b.Code)
		case twice:
			return nil, fmt.Errorf("%s is shown twice", b.Name)
		}
		found[b.Name] = b.Code
	}
	return found, nil
}

// Fragments returns the marked regions of files by name, without indentation.
func Fragments(files ...string) (map[string]string, error) {
	found := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		regions := region.FindAllStringSubmatch(string(source), -1)
		if len(begin.FindAllString(string(source), -1)) != len(regions) {
			return nil, fmt.Errorf("%s: a fragment without an end", file)
		}
		for _, r := range regions {
			if found[r[1]] != "" {
				return nil, fmt.Errorf("%s: there are two fragments %s", file, r[1])
			}
			found[r[1]] = outdent(r[2])
		}
	}
	return found, nil
}

// outdent removes the indentation of the first line from all lines, and the empty lines around
// them.
func outdent(text string) string {
	text = strings.Trim(text, "\n") + "\n"
	return regexp.MustCompile(`(?m)^`+indent.FindString(text)).ReplaceAllString(text, "")
}

// A Part of a page begins at a heading, or at the beginning of the page, and ends at the next heading. It
// has what does not depend on the language of the page.
type Part struct {
	Level string   // of its heading, such as "##"; empty at the beginning of the page
	Code  []string // the code within the text, sorted, each once
	Links int
	Rows  int // of tables
}

// Parts returns the parts of a page in their order.
func Parts(text string) (parts []Part) {
	text = withoutBlocks(text)
	level, begin := "", 0
	for _, h := range heading.FindAllStringSubmatchIndex(text, -1) {
		parts = append(parts, partOf(level, text[begin:h[0]]))
		level, begin = text[h[2]:h[3]], h[1]
	}
	return append(parts, partOf(level, text[begin:]))
}

func partOf(level, text string) Part {
	var code []string
	for _, s := range span.FindAllStringSubmatch(text, -1) {
		code = append(code, strings.Join(strings.Fields(s[1]), " ")) // a span may be wrapped
	}
	slices.Sort(code)
	return Part{
		Level: level, Code: slices.Compact(code),
		Links: len(link.FindAllString(text, -1)), Rows: len(row.FindAllString(text, -1)),
	}
}

// Links returns the targets of the links and pictures of a page in their order.
func Links(text string) (targets []string) {
	for _, l := range link.FindAllStringSubmatch(withoutBlocks(text), -1) {
		targets = append(targets, l[1])
	}
	return targets
}

// Broken returns the links of a page that have no target in this repository. It does not ask other
// sites.
func Broken(page string) ([]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var broken []string
	anchors := map[string]map[string]bool{} // by the file
	prose := withoutBlocks(string(text))
	for _, l := range append(link.FindAllStringSubmatch(prose, -1), image.FindAllStringSubmatch(prose, -1)...) {
		if strings.HasPrefix(l[1], "https://") || strings.HasPrefix(l[1], "http://") {
			continue
		}
		if err := target(page, l[1], anchors); err != nil {
			broken = append(broken, fmt.Sprintf("%s: %v", l[1], err))
		}
	}
	return broken, nil
}

// target returns an error if a link on a page has no target. It adds to the anchors that are known.
func target(page, link string, anchors map[string]map[string]bool) error {
	name, fragment, _ := strings.Cut(link, "#")
	file := page
	if name != "" {
		file = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
	}
	if _, err := os.Stat(file); err != nil || fragment == "" || filepath.Ext(file) != ".md" {
		return err
	}
	if anchors[file] == nil {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		anchors[file] = Anchors(string(text))
	}
	if !anchors[file][fragment] {
		return fmt.Errorf("%s has no such heading", file)
	}
	return nil
}

// Section returns a page's text from the heading with the anchor up to the next heading of the same level
// or above. It returns "" if there is no such heading.
func Section(text, anchor string) string {
	headings := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headings {
		if slug(text[h[4]:h[5]]) != anchor {
			continue
		}
		for _, next := range headings[i+1:] {
			if next[3]-next[2] <= h[3]-h[2] {
				return text[h[0]:next[0]]
			}
		}
		return text[h[0]:]
	}
	return ""
}

// Anchors returns the anchors that GitHub gives to the headings of a page, and those that the page
// itself has.
func Anchors(text string) map[string]bool {
	text = withoutBlocks(text)
	found := map[string]bool{}
	for _, a := range anchor.FindAllStringSubmatch(text, -1) {
		found[a[1]] = true
	}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		name := slug(h[2])
		for i, again := 1, name; found[name]; i++ {
			name = fmt.Sprintf("%s-%d", again, i)
		}
		found[name] = true
	}
	return found
}

// slug returns a heading in the form of an anchor: letters, digits, hyphens and underscores.
func slug(heading string) string {
	heading = regexp.MustCompile(`<[^>]*>|\]\([^)]*\)`).ReplaceAllString(heading, "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

func withoutBlocks(text string) string { return block.ReplaceAllString(text, "") }
