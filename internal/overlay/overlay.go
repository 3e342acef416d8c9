// Package overlay compiles and tests this module with changed files, for commands that break the code
// on purpose. The files of the module and the build cache of the user stay as they are.
package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Dir is a directory for changed files, and for a build cache of what is compiled from them.
type Dir struct{ Path string }

// New creates an empty directory. The caller removes it with Remove.
func New(name string) (Dir, error) {
	path, err := os.MkdirTemp("", name)
	return Dir{path}, err
}

// Remove deletes the directory and all that is in it. It joins its error to *err.
func (d Dir) Remove(err *error) { *err = errors.Join(*err, os.RemoveAll(d.Path)) }

// Write writes changed files, by the names of those in the working directory that they replace or add.
// It returns the name of a file for "go test -overlay".
func (d Dir) Write(files map[string]string) (overlay string, err error) {
	dir, err := os.MkdirTemp(d.Path, "files")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, content := range files {
		actual, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[actual] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[actual], []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// Cache returns the environment variable that makes the go command use the build cache of the
// directory. That cache is empty at first, so the standard library is compiled again once.
func (d Dir) Cache() string { return "GOCACHE=" + filepath.Join(d.Path, "cache") }

// Command returns a command with the environment of this process and env, but without the variables
// that select servers and seeds. When ctx ends, the command and its children are killed.
func Command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = time.Second
	killTogether(c)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ZOOKEEPER=") && !strings.HasPrefix(v, "ZKTEST_SEEDS=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, env...)
	return c
}
