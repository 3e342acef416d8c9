package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A class of files has a limit of its own.
type class int

const (
	library class = iota
	docs
	tests
	examples
	classes
)

func (c class) String() string { return [...]string{"library", "docs", "tests", "examples"}[c] }

// limits are numbers of pronouns in 10,000 words. Prose that reaches one is refused.
var limits = [classes]int{library: 10, docs: 15, tests: 20, examples: 20}

// classOf returns the class of the file at path, false if it has no prose to count.
func classOf(path string) (class, bool) {
	switch {
	case slices.Contains(strings.Split(path, "/"), "testdata"), isRecord(path):
		return 0, false
	case strings.HasSuffix(path, ".md"):
		return docs, true
	case !strings.HasSuffix(path, ".go"):
		return 0, false
	case strings.HasSuffix(path, "_test.go"), under(path, "test", "internal", "recipes/internal/contracttest"):
		return tests, true
	case under(path, "examples", "docs"):
		return examples, true
	}
	return library, true
}

func under(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(path, folder+"/") })
}

// isRecord reports whether the file at path is a record of a decision. Records are not rewritten, so
// their pronouns, long lines and given-up words are not counted.
func isRecord(path string) bool { return under(path, "docs/adr") }

// mayUseGivenUp reports whether the file at path may have the words that are given up: what is past is
// not rewritten, and the table has them all.
func mayUseGivenUp(path string) bool {
	return isRecord(path) || path == "CHANGELOG.md" || path == "internal/prose/words.go"
}

// A place is a line with something to change.
type place struct {
	class   class
	file    string
	line    int
	hits    int // found on the line
	columns int // width of the line
	text    string
}

// counts is what a tree has. Given-up words are found in files of all kinds, so their places have no class.
type counts struct {
	words    [classes]int
	pronouns []place
	wide     []place
	givenUp  []place
}

// inClass returns the number of hits at those of places that are in class c.
func inClass(places []place, c class) int {
	n := 0
	for _, p := range places {
		if p.class == c {
			n += p.hits
		}
	}
	return n
}

// exceeds reports whether class c has reached its limit of pronouns.
func (n *counts) exceeds(c class) bool {
	found := inClass(n.pronouns, c)
	return found > 0 && found*10_000 >= limits[c]*n.words[c]
}

// bad reports whether any limit is exceeded. No long line and no given-up word is allowed.
func (n *counts) bad() bool {
	for c := range classes {
		if n.exceeds(c) {
			return true
		}
	}
	return len(n.wide) > 0 || len(n.givenUp) > 0
}

// check counts in all files of the tree at root. A tree without files is an error: nothing was checked.
func check(root string) (*counts, error) {
	paths, err := files(root)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("no files to check")
	}
	n := &counts{}
	for _, path := range paths {
		source, err := readRegular(filepath.Join(root, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and the index of git still has it
		}
		if err != nil {
			return nil, err
		}
		if err := n.add(path, source); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// add counts in one file. Binary files, which have a zero byte, are left out, as by git grep.
func (n *counts) add(path, source string) error {
	if strings.Contains(source, "\x00") {
		return nil
	}
	lines := strings.Split(source, "\n")
	if !mayUseGivenUp(path) {
		n.givenUp = append(n.givenUp, placesOf(0, path, lines, lineMatches(lines, givenUp))...)
	}
	c, ok := classOf(path)
	if !ok {
		return nil
	}
	markdown := strings.HasSuffix(path, ".md")
	n.addWide(c, path, lines, markdown)
	if markdown {
		n.addProse(c, path, lines, markdownProse(source))
		return nil
	}
	prose, err := goProse(path, source)
	if err != nil {
		return err
	}
	n.addProse(c, path, lines, prose)
	return nil
}

func (n *counts) addWide(c class, path string, lines []string, markdown bool) {
	wide := map[int]int{}
	for i, s := range lines {
		if tooWide(s, markdown) {
			wide[i+1] = 1
		}
	}
	n.wide = append(n.wide, placesOf(c, path, lines, wide)...)
}

func (n *counts) addProse(c class, path string, lines []string, prose []paragraph) {
	for _, p := range prose {
		n.words[c] += p.words()
		n.pronouns = append(n.pronouns, placesOf(c, path, lines, p.matches(pronouns))...)
	}
}

func lineMatches(lines []string, pattern *regexp.Regexp) map[int]int {
	found := map[int]int{}
	for i, s := range lines {
		if n := len(pattern.FindAllString(s, -1)); n > 0 {
			found[i+1] = n
		}
	}
	return found
}

// placesOf makes a place of each line in hits, which has the number of hits by the number of the line.
func placesOf(c class, path string, lines []string, hits map[int]int) []place {
	var all []place
	for number, n := range hits {
		text := lines[number-1]
		all = append(all, place{c, path, number, n, columns(text), strings.TrimSpace(text)})
	}
	return all
}

// files returns the paths of the files that git tracks below root, with slashes and relative to it.
// Without git, or if root is in no repository, these are all files but those in .git.
func files(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return walk(root)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00"), nil
}

func walk(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		relative, err := filepath.Rel(root, path)
		paths = append(paths, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	return paths, nil
}

// readRegular returns what the file at path has, nothing if it is a link or a submodule.
func readRegular(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	content, err := os.ReadFile(path)
	return string(content), err
}
