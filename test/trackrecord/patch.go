package main

import (
	"fmt"
	"os"
	"strings"
)

// hunk is a place that a patch changes: the lines before and after.
type hunk struct {
	file     string
	old, new string
}

// readPatch returns the hunks of a unified diff. The numbers of lines do not count.
func readPatch(text string) (hunks []hunk, err error) {
	file := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--- a/"):
			file = strings.TrimSpace(strings.TrimPrefix(line, "--- a/"))
		case strings.HasPrefix(line, "+++ "):
		case strings.HasPrefix(line, "@@"):
			if file == "" {
				return nil, fmt.Errorf("a hunk has no file")
			}
			hunks = append(hunks, hunk{file: file})
		case len(hunks) == 0:
		default:
			h := &hunks[len(hunks)-1]
			switch line[0] {
			case ' ':
				h.old, h.new = h.old+line[1:], h.new+line[1:]
			case '-':
				h.old += line[1:]
			case '+':
				h.new += line[1:]
			}
		}
	}
	if len(hunks) == 0 {
		return nil, fmt.Errorf("there is no hunk")
	}
	return hunks, nil
}

// patched returns the contents of the files that a patch changes, by their names. The lines of each
// hunk must be in its file once.
func patched(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	hunks, err := readPatch(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	files := map[string]string{}
	for _, h := range hunks {
		content, ok := files[h.file]
		if !ok {
			b, err := os.ReadFile(h.file)
			if err != nil {
				return nil, fmt.Errorf("%s does not apply any more: %w", name, err)
			}
			content = string(b)
		}
		if n := strings.Count(content, h.old); n != 1 {
			return nil, fmt.Errorf("%s does not apply any more: %s has these lines %d times:\n%s",
				name, h.file, n, h.old)
		}
		files[h.file] = strings.Replace(content, h.old, h.new, 1)
	}
	return files, nil
}
