package chaos

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// disks are those of the servers of an ensemble. Writes to the log of a server can stand still.
type disks struct {
	library string
	dir     string
}

// newDisks compiles the library. It returns nil on systems whose loader is another one.
func newDisks(t *testing.T) *disks {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil
	}
	d := &disks{dir: t.TempDir()}
	d.library = filepath.Join(d.dir, "stall.so")
	cc, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	build := exec.Command(strings.TrimSpace(string(cc)), "-shared", "-fPIC", "-O1", "-o", d.library, "testdata/stall.c")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%v: %s", build, out)
	return d
}

// options make the servers write to their disks with each transaction, by way of the library.
func (d *disks) options(servers int) []ensemble.Option {
	opts := []ensemble.Option{ensemble.WithProperty("zookeeper.forceSync", "yes")}
	for id := 1; id <= servers; id++ {
		opts = append(opts, ensemble.WithServerEnvironment(id, "LD_PRELOAD", d.library),
			ensemble.WithServerEnvironment(id, "DOCENT_STALL", d.file(id)))
	}
	return opts
}

// file exists while the disk of a server stands still. It is not empty once a write waits.
func (d *disks) file(id int) string { return filepath.Join(d.dir, "stall-"+strconv.Itoa(id)) }

func (d *disks) stall(id int) error { return os.WriteFile(d.file(id), nil, 0o600) }

func (d *disks) release(id int) error {
	if err := os.Remove(d.file(id)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// waits reports whether a write waits.
func (d *disks) waits(id int) bool {
	info, err := os.Stat(d.file(id))
	return err == nil && info.Size() > 0
}

func TestStalledDiskKeepsTransactionsBack(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	d := newDisks(t)
	if d == nil {
		t.Skip("the library is for Linux")
	}
	e := ensemble.Start(t, 1, d.options(1)...)
	conn := observe(t, e.Connect())
	_, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.False(t, d.waits(1))

	require.NoError(t, d.stall(1))
	created := make(chan error, 1)
	go func() {
		_, err := conn.Create("/b", nil, 0, zk.WorldACL(zk.PermAll))
		created <- err
	}()
	testzk.Eventually(t, func() bool { return d.waits(1) }, "no write to the disk waits")
	require.Empty(t, created, "a transaction is answered that is not on the disk")

	require.NoError(t, d.release(1))
	require.NoError(t, <-created)
	require.NoError(t, d.release(1))
}
