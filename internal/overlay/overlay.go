// Package overlay compiles and tests this module with changed files, for commands that break the code
// on purpose. The files of the module and the build cache of the user stay as they are.
package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Dir is a directory for changed files, and for a build cache of what is compiled from them.
type Dir struct{ Path string }

// New creates a directory. Its build cache begins with what was used in the last day of the user's
// build cache, so that the standard library is not compiled again. The caller removes the directory
// with Remove.
func New(name string) (Dir, error) {
	path, err := os.MkdirTemp("", name)
	if err != nil {
		return Dir{}, err
	}
	d := Dir{path}
	user, err := exec.Command("go", "env", "GOCACHE").Output()
	if err == nil {
		err = seed(d.cache(), strings.TrimSpace(string(user)), time.Now().Add(-24*time.Hour))
	}
	if err != nil {
		d.Remove(&err)
	}
	return d, err
}

// seed links the outputs of a build cache that were used after a time, and copies what refers to
// them, which the go command can write again in place. What cannot be linked is compiled again.
func seed(to, from string, after time.Time) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return unlessRemoved(err)
		}
		info, err := e.Info()
		if err != nil || info.ModTime().Before(after) {
			return unlessRemoved(err)
		}
		place := filepath.Join(to, strings.TrimPrefix(name, from))
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return err
		}
		if strings.HasSuffix(name, "-d") {
			_ = os.Link(name, place)
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return unlessRemoved(err)
		}
		return os.WriteFile(place, text, 0o644)
	})
}

// unlessRemoved returns no error for a file that another build has removed from the cache.
func unlessRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
// directory.
func (d Dir) Cache() string { return "GOCACHE=" + d.cache() }

func (d Dir) cache() string { return filepath.Join(d.Path, "cache") }

// Command returns a command with the environment of this process and env, but without the variables
// that select servers and seeds. When ctx ends, the command and its children are killed. What the go
// command leaves then is in the directory.
func (d Dir) Command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = time.Second
	killTogether(c)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ZOOKEEPER=") && !strings.HasPrefix(v, "ZKTEST_SEEDS=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(append(c.Env, "GOTMPDIR="+d.Path), env...)
	return c
}
