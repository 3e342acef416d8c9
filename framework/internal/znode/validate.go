package znode

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is matched by every error of [ValidatePath] and [ValidatePrefix].
var ErrInvalid = errors.New("invalid path")

// ValidatePath returns nil if a server accepts path as the name of a node, and otherwise an error that matches
// [ErrInvalid] and names the path, the reason and the position in bytes from 0.
//
// A valid path is "/" or starts with a slash, does not end with one, has no component that is empty, "." or "..", is
// UTF-8, and has none of the characters that ZooKeeper forbids: U+0000-U+001F, U+007F-U+009F, U+D800-U+F8FF,
// U+FFF0-U+FFFF. Characters above U+FFFF are forbidden too: the server looks at UTF-16, where they are pairs of
// U+D800-U+DFFF.
func ValidatePath(path string) error {
	return validate(path, false)
}

// ValidatePrefix is [ValidatePath] for the path of a sequential create. The server appends digits before it checks, so the
// last component may be empty, "." or "..".
func ValidatePrefix(path string) error {
	return validate(path, true)
}

func validate(path string, prefix bool) error {
	if problem := findProblem(path, prefix); problem != "" {
		return fmt.Errorf("%w %q: %s", ErrInvalid, path, problem)
	}
	return nil
}

// findProblem returns why path is not valid, "" if it is.
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

// forbidden reports whether a server refuses r anywhere in a path.
func forbidden(r rune) bool {
	return r <= 0x1F || 0x7F <= r && r <= 0x9F || 0xD800 <= r && r <= 0xF8FF || 0xFFF0 <= r
}

// findBadComponent looks at the components of a path that starts with a slash. If prefix is set the last one is not
// judged.
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
