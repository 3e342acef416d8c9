package overlay

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChangedFilesAreCompiledWithACacheThatIsRemoved(t *testing.T) {
	t.Setenv("GOCACHE", t.TempDir()) // that of the user can be large
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("go.mod", []byte("module m\n\ngo 1.25\n"), 0o644))
	require.NoError(t, os.WriteFile("a.go", []byte("package a\n\nvar a = one\n"), 0o644))
	d, err := New("overlay")
	require.NoError(t, err)
	changed, err := d.Write(map[string]string{"one.go": "package a\n\nconst one = 1\n"})
	require.NoError(t, err)
	out, err := d.Command(t.Context(), []string{d.Cache()}, "go", "build", "-overlay", changed, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoFileExists(t, "one.go")
	cached, err := filepath.Glob(filepath.Join(d.Path, "cache", "*", "*-d"))
	require.NoError(t, err)
	require.NotEmpty(t, cached)
	d.Remove(&err)
	require.NoError(t, err)
	require.NoDirExists(t, d.Path)
}

func TestCacheBeginsWithWhatWasUsedLastInTheOther(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	begin := time.Now()
	for name, used := range map[string]time.Time{
		"00/a-a": begin.Add(time.Second), "00/a-d": begin.Add(time.Second), "01/b-d": begin.Add(-time.Second),
	} {
		file := filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(name), 0o644))
		require.NoError(t, os.Chtimes(file, used, used))
	}
	require.NoError(t, seed(to, from, begin))
	for _, name := range []string{"00/a-a", "00/a-d"} {
		text, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		require.Equal(t, name, string(text))
	}
	require.NoFileExists(t, filepath.Join(to, "01/b-d"))
	// The go command writes over such a file.
	require.NoError(t, os.WriteFile(filepath.Join(to, "00/a-a"), nil, 0o644))
	text, err := os.ReadFile(filepath.Join(from, "00/a-a"))
	require.NoError(t, err)
	require.Equal(t, "00/a-a", string(text))
	require.NoError(t, seed(to, filepath.Join(from, "missing"), begin))
}

func TestCommandHasNoVariablesThatSelectServers(t *testing.T) {
	t.Setenv("ZOOKEEPER", "3")
	t.Setenv("ZKTEST_SEEDS", "1000")
	d := Dir{t.TempDir()}
	c := d.Command(t.Context(), []string{"ZKTEST_SEEDS=4"}, "go")
	require.Contains(t, c.Env, "ZKTEST_SEEDS=4")
	require.NotContains(t, c.Env, "ZKTEST_SEEDS=1000")
	require.NotContains(t, c.Env, "ZOOKEEPER=3")
	require.Contains(t, c.Env, "GOTMPDIR="+d.Path)
}

// TestChildrenEndWithTheCommand has a shell wait for a child that holds the end of a pipe.
func TestChildrenEndWithTheCommand(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	c := Dir{}.Command(ctx, nil, "sh", "-c", "(echo here; sleep 1000) & wait")
	c.Stdout = w
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	_, err = r.Read(make([]byte, 8))
	require.NoError(t, err)
	end()
	require.Error(t, c.Wait())
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = r.Read(make([]byte, 8))
	require.ErrorContains(t, err, "EOF", "the child has its end of the pipe")
}
