package mutex_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

func TestLockStaysExclusiveAndFairAtTheEndOfTheCounter(t *testing.T) {
	for name, from := range map[string]uint32{"before the end": math.MaxInt32 - 4, "at the end": math.MaxInt32} {
		t.Run(name, func(t *testing.T) {
			connect := serverWithCounter(t, "/lock", from)
			first := newMutex(t, testzk.Connected(t, connect), "/lock")
			second := newMutex(t, testzk.Connected(t, connect), "/lock")
			holder := acquire(t, first)
			var waiters []*attempt
			for i := range 8 {
				waiters = append(waiters, start(t, second))
				queued(t, first, i+2)
			}
			_, err := first.TryAcquire(testzk.Context(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			ctx, cancel := context.WithTimeout(testzk.Context(t), 100*time.Millisecond)
			defer cancel()
			_, err = first.Acquire(ctx)
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			queued(t, first, 9)
			for i, w := range waiters {
				line := queued(t, first, 9-i)
				require.Equal(t, holder.Path(), line[0].Node)
				require.True(t, w.waiting(), "waiter %d got the lock while it is held", i)
				require.NoError(t, holder.Release())
				next := w.won(t)
				require.Greater(t, next.Token(), holder.Token())
				holder = next
			}
			require.NoError(t, holder.Release())
		})
	}
}

// serverWithCounter starts a server on which the next child of path gets the number next.
func serverWithCounter(t *testing.T, path string, next uint32) (connect string) {
	t.Helper()
	if realzk.Wanted() != "" {
		return realServerWithCounter(t, path, next)
	}
	srv := zktest.Start(t)
	require.NoError(t, srv.Create(path, nil))
	require.NoError(t, srv.SetSequence(path, int32(next)))
	return srv.Addr()
}

// realServerWithCounter sets the counter in the server's transaction log, for it cannot be counted up to its end in a test: in the record
// of the only child that the parent ever had.
func realServerWithCounter(t *testing.T, path string, next uint32) (connect string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // where the server's data goes
	e := ensemble.Start(t, 1, ensemble.WithTick(200*time.Millisecond))
	client, err := framework.New(e.Connect())
	require.NoError(t, err)
	child := path + "/first"
	_, err = client.Create(testzk.Context(t), path, nil)
	require.NoError(t, err)
	_, err = client.Create(testzk.Context(t), child, nil)
	require.NoError(t, err)
	require.NoError(t, client.Delete(testzk.Context(t), child, -1))
	require.NoError(t, client.Close())
	server := e.Servers()[0]
	require.NoError(t, server.Stop())
	setCounter(t, dir, child, next)
	require.NoError(t, server.Start(testzk.Context(t)))
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	return e.Connect()
}

// setCounter changes what the transaction that created child says of its parent's counter, in all logs below dir.
func setCounter(t *testing.T, dir, child string, counter uint32) {
	t.Helper()
	changed := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), "log.") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed += patchLog(data, child, counter)
		return errors.Join(err, os.WriteFile(path, data, 0o600))
	}))
	require.Equal(t, 1, changed, "records of the creation of %s in the transaction logs", child)
}

// patchLog goes over the records of a transaction log: a checksum (8 bytes), a length (4), the transaction, an end mark (1). In
// a create transaction, the parent's counter is the 4 bytes before the digest that ends it (12 bytes).
func patchLog(data []byte, child string, counter uint32) (changed int) {
	const head, opAt, opCreate = 16, 28, 1
	for at := head; at+12 < len(data); {
		length := int(binary.BigEndian.Uint32(data[at+8:]))
		if length == 0 {
			break
		}
		txn := data[at+12 : at+12+length]
		if binary.BigEndian.Uint32(txn[opAt:]) == opCreate && bytes.Contains(txn, []byte(child)) {
			binary.BigEndian.PutUint32(txn[length-16:], counter)
			binary.BigEndian.PutUint64(data[at:], uint64(adler32.Checksum(txn)))
			changed++
		}
		at += 12 + length + 1
	}
	return changed
}
