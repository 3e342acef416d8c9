package znode

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// All errors of [ValidatePath] and [ValidatePrefix] match ErrInvalid.
var ErrInvalid = errors.New("framework: invalid path")

// ValidatePath returns nil if a server accepts path as the name of a node. Otherwise it returns an
// error that matches [ErrInvalid] and has the path, the reason and the position in bytes from 0.
//
// A valid path is "/", or starts with a slash and does not end with one. No component is empty, "."
// or "..". The path is UTF-8 without the characters that ZooKeeper forbids: U+0000-U+001F,
// U+007F-U+009F, U+D800-U+F8FF, U+FFF0-U+FFFF. Characters above U+FFFF are forbidden too: the
// server checks UTF-16, in which they are pairs of U+D800-U+DFFF.
func ValidatePath(path string) error {
	return validate(path, false)
}

// ValidatePrefix is [ValidatePath] for the path of a sequential create. The server appends digits
// before it checks the path, so the last component may be empty, "." or "..".
func ValidatePrefix(path string) error {
	return validate(path, true)
}

func validate(path string, prefix bool) error {
	if problem := findProblem(path, prefix); problem != "" {
		return fmt.Errorf("%w %q: %s", ErrInvalid, path, problem)
	}
	return nil
}

// findProblem returns the reason why path is not valid, or "" if it is valid.
func findProblem(path string, prefix bool) string {
	switch {
	case path == "":
		return "it is empty"
	case path[0] != '/':
		return "it does not start with a slash"
	case path == "/":
		return ""
	}
	if problem := findBadRune(path); problem != "" {
		return problem
	}
	return findBadComponent(path, prefix)
}

func findBadRune(path string) string {
	for i, r := range path {
		if r == utf8.RuneError && !strings.HasPrefix(path[i:], "\uFFFD") {
			return fmt.Sprintf("invalid UTF-8 at position %d", i)
		}
		if forbidden(r) {
			return fmt.Sprintf("forbidden character %U at position %d", r, i)
		}
	}
	return ""
}

// forbidden reports whether a server refuses r in every path.
func forbidden(r rune) bool {
	return r <= 0x1F || 0x7F <= r && r <= 0x9F || 0xD800 <= r && r <= 0xF8FF || 0xFFF0 <= r
}

// findBadComponent checks the components of a path that starts with a slash. If prefix is set, it
// does not check the last one.
func findBadComponent(path string, prefix bool) string {
	position := 1
	for component := range strings.SplitSeq(path[1:], "/") {
		last := position+len(component) == len(path)
		switch {
		case last && prefix:
			return ""
		case last && component == "":
			return "it ends with a slash"
		case component == "":
			return fmt.Sprintf("empty component at position %d", position)
		case component == "." || component == "..":
			return fmt.Sprintf("component %q at position %d", component, position)
		}
		position += len(component) + 1
	}
	return ""
}
