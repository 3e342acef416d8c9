package tree

import (
	"strings"
	"unicode/utf8"
)

// The nodes that every tree has.
const (
	systemPath = "/zookeeper"
	quotaPath  = systemPath + "/quota"
	configPath = systemPath + "/config"
)

// Parent returns the path of the parent, "" for a child of the root. As on the real server, the
// root has two names.
func Parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// key returns the name under which the tree stores a node.
func key(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// plausible is the check of a path that comes before the search for its parent.
func plausible(path string) bool {
	return strings.Contains(path, "/") && !strings.ContainsRune(path, 0)
}

// Valid reports whether path obeys all rules.
func Valid(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return strings.IndexFunc(path, forbidden) < 0
}

// forbidden reports whether paths must not contain r. A character of two UTF-16 units is forbidden
// because the server checks single units and forbids surrogates.
func forbidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return true
	}
	return r == utf8.RuneError
}

func special(path string) bool {
	switch path {
	case "/", systemPath, quotaPath, configPath:
		return true
	}
	return false
}
