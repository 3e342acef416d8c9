package outside

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root    = "../.."
	docent  = "github.com/docent-zk/docent"
	version = "v0.987.0" // of the release that is tried
)

// command runs a command in a folder and returns what it prints. env is added to the environment.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begun := time.Now()
	out, err := cmd.Output()
	t.Logf("%s %s: %v", name, strings.Join(args, " "), time.Since(begun).Round(time.Millisecond))
	require.NoError(t, err, "%s %s:\n%s%s", name, strings.Join(args, " "), out, errs.String())
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// prepared returns a repository with the files of this one, in which the version can be released. Its
// remaining files are those that git would add here.
func prepared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	listed := command(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for _, name := range strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		write(t, dir, name, read(t, filepath.Join(root, name)))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), info.Mode()))
	}
	entry := "## [" + version[1:] + "] - 2026-01-01\n\n- Something.\n"
	write(t, dir, "CHANGELOG.md", "# Changelog\n\n"+entry)
	command(t, dir, nil, "scripts/release.sh", "-prepare", version)
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a"},
	} {
		command(t, dir, nil, "git", args...)
	}
	return dir
}

var tagged = regexp.MustCompile(`(?m)^git tag .* (\S*)` + regexp.QuoteMeta(version) + ` [0-9a-f]+$`)

// released makes the modules that scripts/release.sh tags available in a folder, as a module proxy does,
// and returns the folder and the paths of the modules.
func released(t *testing.T) (proxy string, modules []string) {
	t.Helper()
	repository := prepared(t)
	proxy = t.TempDir()
	for _, tag := range tagged.FindAllStringSubmatch(command(t, repository, nil, "scripts/release.sh", version), -1) {
		folder := strings.TrimSuffix(tag[1], "/")
		modules = append(modules, path.Join(docent, folder))
		publish(t, proxy, repository, folder)
	}
	return proxy, modules
}

// publish adds the module in a folder of a repository to a proxy.
func publish(t *testing.T, proxy, repository, folder string) {
	t.Helper()
	versions := path.Join(docent, folder, "@v")
	write(t, proxy, versions+"/list", version+"\n")
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	write(t, proxy, versions+"/"+version+".info", string(info))
	write(t, proxy, versions+"/"+version+".mod", read(t, filepath.Join(repository, folder, "go.mod")))
	var all bytes.Buffer
	require.NoError(t, zip.CreateFromVCS(&all, module.Version{Path: path.Join(docent, folder), Version: version},
		repository, "HEAD", folder))
	write(t, proxy, versions+"/"+version+".zip", all.String())
}

// environment returns the settings of a program that gets docent from a proxy. Other modules come from the
// cache of this user, or else from where they come for this user. What is got is kept nowhere.
func environment(t *testing.T, proxy string) []string {
	t.Helper()
	known := strings.Fields(command(t, ".", nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	require.Len(t, known, 2)
	file := func(folder string) string { return "file://" + filepath.ToSlash(folder) }
	return []string{
		"GOPROXY=" + file(proxy) + "," + file(filepath.Join(known[0], "cache", "download")) + "," + known[1],
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=" + os.Getenv("GOFLAGS") + " -modcacherw -trimpath", "GOSUMDB=off",
		"GOPRIVATE=", "GONOPROXY=", "GOWORK=off", "GOBIN=" + t.TempDir(),
	}
}

// serve starts the test server of the release and returns its address.
func serve(t *testing.T, env []string) string {
	t.Helper()
	command(t, t.TempDir(), env, "go", "install", docent+"/cmd/zktest@"+version)
	bin, _ := strings.CutPrefix(env[len(env)-1], "GOBIN=")
	cmd := exec.Command(filepath.Join(bin, "zktest"), "-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	return address
}

// A new module gets each module of the release, and programs that use them run.
func TestAReleaseIsUsableFromOutside(t *testing.T) {
	proxy, modules := released(t)
	require.Contains(t, modules, docent)
	adapters := read(t, "testdata/adapters/main.go")
	env := environment(t, proxy)
	address := serve(t, env)

	program := regexp.MustCompile("(?s)\n```go\n(.*?)```").FindStringSubmatch(read(t, filepath.Join(root, "README.md")))
	require.NotNil(t, program, "the program of the README")
	const local = `framework.New("127.0.0.1:2181"`
	require.Contains(t, program[1], local)
	dir := t.TempDir()
	write(t, dir, "main.go", strings.Replace(program[1], local, `framework.New("`+address+`"`, 1))
	command(t, dir, env, "go", "mod", "init", "example.org/orders")
	command(t, dir, env, "go", "get", docent+"@"+version)
	command(t, dir, env, "go", "mod", "tidy")
	require.Contains(t, command(t, dir, env, "go", "run", "."), "writing under the lock, with the token ")

	dir = t.TempDir()
	write(t, dir, "main.go", adapters)
	command(t, dir, env, "go", "mod", "init", "example.org/adapters")
	get := []string{"get"}
	for _, m := range modules {
		require.Contains(t, adapters, `"`+m, "the program uses no package of a module that is released")
		get = append(get, m+"@"+version)
	}
	command(t, dir, env, "go", get...)
	command(t, dir, env, "go", "mod", "tidy")
	require.NotContains(t, read(t, filepath.Join(dir, "go.mod")), "replace")
	require.Equal(t, "prometheus true\notel true\nredislock true\netcdlock true\nsqllock true\n",
		command(t, dir, env, "go", "run", ".", address))
}
