package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// errNoEmptyLog marks the data of a server whose last transaction log is not empty.
var errNoEmptyLog = errors.New("the last transaction log is not empty")

// startRepaired starts a server that is down. If it ends because its last transaction log is an empty file,
// startRepaired sets the file aside, and starts the server again. A server that is killed after it has
// created the file leaves it so (ZOOKEEPER-2332). It writes the header before it writes a transaction, so
// it has agreed to none that was in the file, and the repair loses none. The folder, which must not exist,
// gets a copy of the data with the empty file beside it. startRepaired returns the name of the file, which
// is empty if nothing was repaired. Any other failed start is returned as it is.
func startRepaired(ctx context.Context, s *ensemble.Server, folder string) (file string, err error) {
	err = s.Start(ctx)
	if err == nil || !endedInLogHeader(err) {
		return "", err
	}
	if backupErr := s.Backup(folder); backupErr != nil {
		return "", errors.Join(err, backupErr)
	}
	file, asideErr := setEmptyLogAside(folder)
	if asideErr != nil {
		return "", errors.Join(err, asideErr)
	}
	if err := s.Restore(folder); err != nil {
		return "", err
	}
	return file, s.Start(ctx)
}

// endedInLogHeader reports whether a start failed because the header of a transaction log cannot be read
// to its end.
func endedInLogHeader(err error) bool {
	_, trace, found := strings.Cut(err.Error(), "java.io.EOFException")
	return found && strings.Contains(trace, "persistence.FileHeader.deserialize") &&
		strings.Contains(trace, "FileTxnLog$FileTxnIterator.goToNextLog")
}

// setEmptyLogAside moves the last transaction log of the data in a folder, which must be empty, to where a
// server does not look for it. It returns its name, and errNoEmptyLog if there is none.
func setEmptyLogAside(folder string) (string, error) {
	name, err := lastLog(folder)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "version-2", name)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > 0 {
		return "", fmt.Errorf("%w: %s has %d bytes", errNoEmptyLog, name, info.Size())
	}
	return name, os.Rename(path, filepath.Join(folder, "empty-"+name))
}

// lastLog returns the name of the transaction log with the highest zxid.
func lastLog(folder string) (last string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "version-2", "log.*"))
	highest := int64(-1)
	for _, file := range files {
		zxid, err := strconv.ParseInt(strings.TrimPrefix(filepath.Ext(file), "."), 16, 64)
		if err != nil {
			return "", err
		}
		if zxid > highest {
			highest, last = zxid, filepath.Base(file)
		}
	}
	if last == "" {
		return "", errors.Join(err, errNoEmptyLog)
	}
	return last, err
}

// damage changes the data of a server that is down.
func damage(t *testing.T, s *ensemble.Server, change func(folder string)) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "data")
	require.NoError(t, s.Backup(folder))
	change(folder)
	require.NoError(t, s.Restore(folder))
}

func TestOnlyAnEmptyLastLogIsRepaired(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	e := ensemble.Start(t, 3)
	s := e.Servers()[0]
	_, err := testzk.Connected(t, e.Connect()).Create(testzk.Context(t), "/kept", []byte("data"))
	require.NoError(t, err)
	require.NoError(t, e.WaitReady(testzk.Context(t)))

	require.NoError(t, s.Kill())
	next := filepath.Join("version-2", "log.7fffffff00000001")
	damage(t, s, func(folder string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, next), []byte("ZK"), 0o600))
	})
	kept := filepath.Join(t.TempDir(), "kept")
	file, err := startRepaired(testzk.Context(t), s, kept)
	require.ErrorIs(t, err, errNoEmptyLog, "a file with a part of its header")
	require.True(t, endedInLogHeader(err))
	require.Empty(t, file)
	require.False(t, s.Running())

	damage(t, s, func(folder string) { require.NoError(t, os.Truncate(filepath.Join(folder, next), 0)) })
	require.Error(t, s.Start(testzk.Context(t)), "the server repairs itself")
	kept = filepath.Join(t.TempDir(), "kept")
	file, err = startRepaired(testzk.Context(t), s, kept)
	require.NoError(t, err)
	require.Equal(t, filepath.Base(next), file)
	require.FileExists(t, filepath.Join(kept, "empty-"+file))
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	data, _, err := testzk.Connected(t, s.Addr()).Get(testzk.Context(t), "/kept")
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
}

func TestOtherFailedStartsAreNotRepaired(t *testing.T) {
	for _, text := range []string{
		"the process ended by itself: exit status 1\njava.io.IOException: no space",
		"java.io.EOFException\n\tat persistence.FileSnap.deserialize(FileSnap.java:1)",
		"\tat persistence.FileHeader.deserialize(FileHeader.java:67)",
		"java.io.EOFException\n\tat persistence.FileHeader.deserialize(FileHeader.java:67)",
	} {
		require.False(t, endedInLogHeader(errors.New(text)), text)
	}
	folder := t.TempDir()
	logs := filepath.Join(folder, "version-2")
	require.NoError(t, os.Mkdir(logs, 0o700))
	_, err := setEmptyLogAside(folder)
	require.ErrorIs(t, err, errNoEmptyLog, "no log")
	require.NoError(t, os.WriteFile(filepath.Join(logs, "log.ff"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(logs, "log.100"), []byte("ZKLG"), 0o600))
	_, err = setEmptyLogAside(folder)
	require.ErrorIs(t, err, errNoEmptyLog, "an empty log before the last one")
}
