package contracttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// A server counts all children that a node ever had, up to 2^31-1. Each later child gets that
// number too.
func endOfTheCounter(t *testing.T, k Kind) {
	const path = "/lock"
	counted := k.Counted(path)
	run := func(name string, counted []string, next uint32) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			staysFair(t, k, path, counted, next)
		})
	}
	run("before the end", counted, math.MaxInt32-4)
	run("at the end", counted, math.MaxInt32)
	if len(counted) > 1 {
		run("in one queue only", counted[:1], math.MaxInt32-4)
	}
}

func staysFair(t *testing.T, k Kind, path string, counted []string, next uint32) {
	s := newFixtureAt(t, k, serverWithCounters(t, counted, next), path)
	first := s.client()
	holder := s.occupy(first)
	waiters := s.alternating(8)
	_, err := s.rival(first).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	leaver := s.start(s.rival(first))
	s.waits(len(waiters) + 1)
	leaver.Cancel()
	_, err = leaver.Wait()
	require.ErrorIs(t, err, context.Canceled)
	s.waits(len(waiters))
	for i, w := range waiters {
		require.NoError(t, holder.Err())
		require.True(t, w.Waiting(), "waiter %d got the lock while it is held", i)
		s.release(holder)
		hold := won(t, w)
		require.Greater(t, latestToken(hold), latestToken(holder))
		holder = hold
	}
	s.release(holder)
	s.empty()
}

// serverWithCounters starts a server on which the next child of each of parents gets the number
// next.
func serverWithCounters(t *testing.T, parents []string, next uint32) (connect string) {
	t.Helper()
	if realzk.Wanted() != "" {
		return realServerWithCounters(t, parents, next)
	}
	srv := zktest.Start(t)
	for _, parent := range parents {
		require.NoError(t, srv.Create(parent, nil))
		require.NoError(t, srv.SetSequence(parent, int32(next)))
	}
	return srv.Addr()
}

// realServerWithCounters sets the counters in the server's transaction log: a test cannot create
// 2^31 nodes. It changes the record of the only child that each parent ever had.
func realServerWithCounters(t *testing.T, parents []string, next uint32) (connect string) {
	t.Helper()
	e := ensemble.Start(t, 1, ensemble.WithTick(200*time.Millisecond))
	client, err := framework.New(e.Connect())
	require.NoError(t, err)
	for _, parent := range parents {
		makeNode(t, client, parent)
		makeNode(t, client, parent+"/first")
		require.NoError(t, client.Delete(testzk.Context(t), parent+"/first", -1))
	}
	require.NoError(t, client.Close())
	server := e.Servers()[0]
	logs := logsOf(t, server)
	require.NoError(t, server.Stop())
	for _, parent := range parents {
		setCounter(t, logs, parent+"/first", next)
	}
	require.NoError(t, server.Start(testzk.Context(t)))
	require.NoError(t, e.WaitReady(testzk.Context(t)))
	return e.Connect()
}

// logsOf returns the directory of a server's transaction logs.
func logsOf(t *testing.T, server *ensemble.Server) string {
	t.Helper()
	settings, err := server.Command(testzk.Context(t), "conf")
	require.NoError(t, err)
	for line := range strings.Lines(settings) {
		if dir, found := strings.CutPrefix(line, "dataLogDir="); found {
			return strings.TrimSpace(dir)
		}
	}
	require.Fail(t, "the server does not report the directory of its logs", settings)
	return ""
}

// makeNode creates a persistent node and its missing parents.
func makeNode(t *testing.T, client *framework.Client, node string) {
	t.Helper()
	if node == "/" {
		return
	}
	makeNode(t, client, path.Dir(node))
	if _, err := client.Create(testzk.Context(t), node, nil); !errors.Is(err, zk.ErrNodeExists) {
		require.NoError(t, err)
	}
}

// setCounter changes the parent's counter in the transaction that created child, in all logs below
// dir.
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

// patchLog changes the records that create child in a transaction log and returns their number. A
// record is a checksum (8 bytes), a length (4), the transaction and an end mark (1). In a create
// transaction the parent's counter is the 4 bytes before the final digest (12 bytes).
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
