package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// errNotRepaired marks a server that does not start, and has no file that could be set aside.
var errNotRepaired = errors.New("no file can be set aside")

// unfinished is a file that a killed server leaves, with which it does not start again.
type unfinished struct {
	kind      string
	endsStart func(failed error) bool // reports whether a start failed because of it
	// find returns its name in a folder with the data of the server. It returns errNotRepaired if there is none,
	// or if the server may have agreed to a transaction that it has nowhere else.
	find func(folder string) (string, error)
}

// unfinishedFiles are the known ones. With two of them a start fails by the earlier one first.
//
// The last transaction log may be empty (ZOOKEEPER-2332). The server writes the header before it writes a
// transaction, so it has agreed to none that was in the file.
//
// A snapshot may be of an epoch that is not yet that of the server (ZOOKEEPER-2354). A server that joins a leader
// writes the snapshot, then the epoch, and agrees to the leader after that. It writes the epoch to another file, which
// may be empty, and which it reads if there is such a snapshot.
var unfinishedFiles = []unfinished{
	{"log", endedInLogHeader, emptyLog},
	{"epoch", endedInEpoch, emptyEpoch},
	{"snapshot", endedBehindSnapshot, snapshotOfLaterEpoch},
}

// startRepaired starts a server that is down. If it ends because of an unfinished file, startRepaired sets the file
// aside, and starts the server again. That loses nothing. The folder, which must not exist, gets a copy of the data
// for each such file, with the file beside it. startRepaired returns the names of the files. They are empty if nothing
// was repaired. Any other failed start is returned as it is.
func startRepaired(ctx context.Context, s *ensemble.Server, folder string) (files string, err error) {
	start := func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*testzk.Patience)
		defer cancel()
		return s.Start(ctx)
	}
	err = start()
	var aside []string
	for _, u := range unfinishedFiles {
		if err == nil || !u.endsStart(err) {
			continue
		}
		file, repairErr := u.setAside(s, filepath.Join(folder, u.kind))
		if repairErr != nil {
			err = errors.Join(err, repairErr)
			break
		}
		aside = append(aside, file)
		err = start()
	}
	return strings.Join(aside, ", "), err
}

// setAside moves the file to where the server does not look. The folder gets a copy of the data.
func (u unfinished) setAside(s *ensemble.Server, folder string) (file string, err error) {
	if err := s.Backup(folder); err != nil {
		return "", err
	}
	file, err = u.find(folder)
	if err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(folder, "version-2", file), filepath.Join(folder, "aside-"+file)); err != nil {
		return "", err
	}
	return file, s.Restore(folder)
}

// endedInLogHeader reports whether a start failed because the header of a transaction log cannot be read
// to its end.
func endedInLogHeader(err error) bool {
	_, trace, found := strings.Cut(err.Error(), "java.io.EOFException")
	return found && strings.Contains(trace, "persistence.FileHeader.deserialize") &&
		strings.Contains(trace, "FileTxnLog$FileTxnIterator.goToNextLog")
}

// endedBehindSnapshot reports whether a start failed because a transaction is of a later epoch than the server.
func endedBehindSnapshot(err error) bool {
	_, text, found := strings.Cut(err.Error(), "java.io.IOException: The current epoch, ")
	return found && strings.Contains(text, ", is older than the last zxid, ")
}

// endedInEpoch reports whether a start failed because there is no number in the file of the next epoch.
func endedInEpoch(err error) bool {
	_, text, found := strings.Cut(err.Error(), "java.io.IOException: Found ")
	file, _, _ := strings.Cut(text, "\n")
	return found && strings.HasSuffix(file, nextEpoch)
}

// nextEpoch is the file to which a server writes the number of an epoch first.
const nextEpoch = "currentEpoch.tmp"

// emptyEpoch returns the name of the file of the next epoch, which must be empty.
func emptyEpoch(folder string) (string, error) { return empty(folder, nextEpoch) }

// empty returns the name of a file, which must be empty.
func empty(folder, name string) (string, error) {
	info, err := os.Stat(filepath.Join(folder, "version-2", name))
	if err != nil {
		return "", err
	}
	if info.Size() > 0 {
		return "", fmt.Errorf("%w: %s has %d bytes", errNotRepaired, name, info.Size())
	}
	return name, nil
}

// emptyLog returns the name of the last transaction log, which must be empty.
func emptyLog(folder string) (string, error) {
	log, err := last(folder, "log.")
	if err != nil {
		return "", err
	}
	return empty(folder, log.name)
}

// snapshotOfLaterEpoch returns the name of the last snapshot, which must be of a later epoch than the server and
// its logs.
func snapshotOfLaterEpoch(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "version-2", "currentEpoch"))
	if err != nil {
		return "", err
	}
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return "", err
	}
	snapshot, err := last(folder, "snapshot.")
	if err != nil {
		return "", err
	}
	if snapshot.zxid>>32 <= epoch {
		return "", fmt.Errorf("%w: %s, the last snapshot, is of epoch %d", errNotRepaired, snapshot.name, epoch)
	}
	switch log, err := last(folder, "log."); {
	case errors.Is(err, errNotRepaired): // there is none
	case err != nil:
		return "", err
	case log.zxid>>32 > epoch:
		return "", fmt.Errorf("%w: %s is later than epoch %d", errNotRepaired, log.name, epoch)
	}
	return snapshot.name, nil
}

// dataFile is a file of a server, whose name has a zxid.
type dataFile struct {
	name string
	zxid int64
}

// last returns the file with the highest zxid. A file whose name ends with .tmp counts, as for the server.
func last(folder, prefix string) (last dataFile, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "version-2", prefix+"*"))
	for _, file := range files {
		name := filepath.Base(file)
		digits := strings.TrimSuffix(strings.TrimPrefix(name, prefix), ".tmp")
		zxid, err := strconv.ParseInt(digits, 16, 64)
		if err != nil {
			return dataFile{}, err
		}
		if last.name == "" || zxid > last.zxid {
			last = dataFile{name, zxid}
		}
	}
	if last.name == "" {
		return dataFile{}, errors.Join(err, fmt.Errorf("%w: there is no %s*", errNotRepaired, prefix))
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

func TestOnlyUnfinishedFilesAreSetAside(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	e := ensemble.Start(t, 3)
	s := e.Servers()[0]
	// The other two write each transaction to their logs before it is committed. So no log is empty.
	require.NoError(t, e.Servers()[2].Kill())
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	_, err := testzk.Connected(t, e.Connect()).Create(testzk.Context(t), "/kept", []byte("data"))
	require.NoError(t, err)
	require.NoError(t, e.WaitReady(testzk.Context(t)))

	require.NoError(t, s.Kill())
	next := filepath.Join("version-2", "log.7fffffff00000001")
	damage(t, s, func(folder string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, next), []byte("ZK"), 0o600))
	})
	kept := filepath.Join(t.TempDir(), "kept")
	file, err := startRepaired(t.Context(), s, kept)
	require.ErrorIs(t, err, errNotRepaired, "a file with a part of its header")
	require.True(t, endedInLogHeader(err))
	require.Empty(t, file)
	require.False(t, s.Running())

	damage(t, s, func(folder string) { require.NoError(t, os.Truncate(filepath.Join(folder, next), 0)) })
	startsRepaired(t, e, s, map[string]string{"log": filepath.Base(next)})

	require.NoError(t, s.Kill())
	next = "snapshot.7fffffff00000001.tmp"
	damage(t, s, func(folder string) {
		written, err := last(folder, "snapshot.")
		require.NoError(t, err)
		logs := filepath.Join(folder, "version-2")
		data, err := os.ReadFile(filepath.Join(logs, written.name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(logs, next), data, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(logs, nextEpoch), nil, 0o600))
	})
	startsRepaired(t, e, s, map[string]string{"epoch": nextEpoch, "snapshot": next})
}

// startsRepaired requires that a server does not start until files are set aside, and has its nodes then.
func startsRepaired(t *testing.T, e *ensemble.Ensemble, s *ensemble.Server, files map[string]string) {
	t.Helper()
	require.Error(t, s.Start(testzk.Context(t)), "the server repairs itself")
	kept := filepath.Join(t.TempDir(), "kept")
	aside, err := startRepaired(t.Context(), s, kept)
	require.NoError(t, err)
	require.Equal(t, strings.Join(slices.Sorted(maps.Values(files)), ", "), aside)
	for kind, file := range files {
		require.FileExists(t, filepath.Join(kept, kind, "aside-"+file))
	}
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
		"java.io.IOException: The accepted epoch, 2 is less than the current epoch, 3",
		"java.io.IOException: Found null in /data/version-2/acceptedEpoch\nnext: currentEpoch.tmp",
	} {
		for _, u := range unfinishedFiles {
			require.False(t, u.endsStart(errors.New(text)), text)
		}
	}
	folder := t.TempDir()
	logs := filepath.Join(folder, "version-2")
	require.NoError(t, os.Mkdir(logs, 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(logs, name), []byte(text), 0o600))
	}
	_, err := emptyLog(folder)
	require.ErrorIs(t, err, errNotRepaired, "no log")
	write("log.ff", "")
	write("log.100", "ZKLG")
	_, err = emptyLog(folder)
	require.ErrorIs(t, err, errNotRepaired, "an empty log before the last one")

	write("currentEpoch", "2")
	_, err = snapshotOfLaterEpoch(folder)
	require.ErrorIs(t, err, errNotRepaired, "no snapshot")
	write("snapshot.200000007", "ZKSN")
	_, err = snapshotOfLaterEpoch(folder)
	require.ErrorIs(t, err, errNotRepaired, "a snapshot of the epoch")
	write("snapshot.300000007", "ZKSN")
	file, err := snapshotOfLaterEpoch(folder)
	require.NoError(t, err)
	require.Equal(t, "snapshot.300000007", file)
	write("log.300000001", "ZKLG")
	_, err = snapshotOfLaterEpoch(folder)
	require.ErrorIs(t, err, errNotRepaired, "a log of the epoch of the snapshot")
}
