package guide

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository returns a repository with three modules, in which v1.2.0 can be released.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const requires = "require github.com/docent-zk/docent v1.2.0\n\nreplace github.com/docent-zk/docent => ../..\n"
	for name, text := range map[string]string{
		"go.mod":              "module github.com/docent-zk/docent\n",
		"contrib/otel/go.mod": "module github.com/docent-zk/docent/contrib/otel\n\n" + requires,
		"test/bench/go.mod":   "module github.com/docent-zk/docent/test/bench\n",
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n- Something.\n\n" +
			"## [1.1.0] - 2026-11-01\n\n- Else.\n",
		"scripts/release.sh": read(t, filepath.Join(root, "scripts/release.sh")),
	} {
		write(t, dir, name, text)
	}
	git(t, dir, "init", "-q")
	commit(t, dir)
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o755))
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func release(dir string, args ...string) (string, error) {
	script := append([]string{filepath.Join(dir, "scripts/release.sh")}, args...)
	out, err := exec.Command("sh", script...).CombinedOutput()
	return string(out), err
}

func TestReleasePrintsTheTagsOfAllModules(t *testing.T) {
	dir := repository(t)
	out, err := release(dir, "v1.2.0")
	require.NoError(t, err, out)
	head := git(t, dir, "rev-parse", "HEAD")
	require.Equal(t, `# no tag: test/bench
git tag -a -m 'docent v1.2.0' contrib/otel/v1.2.0 `+head+`
git tag -a -m 'docent v1.2.0' v1.2.0 `+head+`
git push origin contrib/otel/v1.2.0 v1.2.0
`, out)
	require.Empty(t, git(t, dir, "tag"), "it tags nothing itself")
}

func TestReleaseIsPrepared(t *testing.T) {
	dir := repository(t)
	before := read(t, filepath.Join(dir, "contrib/otel/go.mod"))
	write(t, dir, "contrib/otel/go.mod", strings.Replace(before, "v1.2.0", "v0.0.0", 1))
	write(t, dir, "contrib/otel/doc.go", "package otel\n\nimport _ \"github.com/docent-zk/docent\"\n")
	write(t, dir, "doc.go", "package docent\n")
	write(t, dir, "examples/a/go.mod", "module example.org/a\n")
	out, err := release(dir, "-prepare", "v1.2.0")
	require.NoError(t, err, out)
	after := read(t, filepath.Join(dir, "contrib/otel/go.mod"))
	require.Contains(t, after, "require github.com/docent-zk/docent v1.2.0")
	require.Contains(t, after, "replace github.com/docent-zk/docent => ../..")
	commit(t, dir)
	out, err = release(dir, "v1.2.0")
	require.NoError(t, err, out)
}

func TestReleaseRefusesWhatIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		change  func(t *testing.T, dir string)
		want    string
	}{
		"no version":      {"1.2.0", nil, "usage:"},
		"no changelog":    {"v1.3.0", nil, `no heading "## [1.3.0] - `},
		"another version": {"v1.1.0", nil, "contrib/otel/go.mod requires docent v1.2.0, not v1.1.0"},
		"no entries": {"v1.2.0", func(t *testing.T, dir string) {
			write(t, dir, "CHANGELOG.md", "## [1.2.0] - 2026-12-01\n\n## [1.1.0] - 2026-11-01\n\n- Else.\n")
			commit(t, dir)
		}, "no entries for 1.2.0"},
		"a change": {"v1.2.0", func(t *testing.T, dir string) { write(t, dir, "new", "") }, "changes without a commit"},
		"a tag": {"v1.2.0", func(t *testing.T, dir string) {
			git(t, dir, "tag", "contrib/otel/v1.2.0")
		}, "there is a tag contrib/otel/v1.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			if c.change != nil {
				c.change(t, dir)
			}
			out, err := release(dir, c.version)
			require.Error(t, err, out)
			assert.Contains(t, out, c.want)
			assert.NotContains(t, out, "git push")
		})
	}
}
