package acceptance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/ensemble"
	"github.com/docent-zk/docent/zktest/proxy"
)

// p01OnRealServer disconnects 100 holders from one real server. It compares the times at which
// their holds ended with the times at which the server's transaction log ended their sessions. Both
// are times of this machine's clock.
func p01OnRealServer(t *testing.T) {
	server := ensemble.Start(t, 1, ensemble.WithTick(p01Tick)).Servers()[0]
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	observer := testzk.ObserverOf(t, server.Addr())
	holders := make([]p01Holder, p01Runs)
	for i := range holders {
		holders[i].open(t, observer, server.Addr(), fmt.Sprintf("/lock-%d", i))
		holders[i].phase = time.Duration(random.Int64N(int64(p01Timeout)))
	}
	var running sync.WaitGroup
	for i := range holders {
		running.Go(holders[i].disconnect)
	}
	running.Wait()
	var closed map[int64]time.Time
	open := func(h p01Holder) bool { return closed[h.session].IsZero() }
	testzk.Eventually(t, func() bool {
		closed = p01Closed(t, server)
		return !slices.ContainsFunc(holders, open)
	}, "the server has not ended all sessions")
	for i := range holders {
		h := &holders[i]
		p01CheckLost(t, h.hold, h.work)
		require.ErrorIs(t, h.err, framework.ErrSessionLost)
		require.LessOrEqual(t, h.ended.Sub(h.answered), p01Timeout, "holder %d: too late after an answer", i)
		require.Less(t, h.ended, closed[h.session], "holder %d: its node was deleted before the hold ended", i)
		h.proxy.Blackhole(false)
	}
}

// p01Holder is a client that is disconnected while it holds a lock.
type p01Holder struct {
	proxy   *proxy.Proxy
	session int64
	hold    *recipes.Hold
	work    context.Context
	phase   time.Duration // until it is disconnected

	answered time.Time // no request that was sent later was answered
	ended    time.Time
	err      error
}

func (h *p01Holder) open(t *testing.T, observer *testzk.Conn, server, path string) {
	h.proxy = proxy.Start(t, server)
	client := testzk.Connected(t, h.proxy.Addr(), framework.WithSessionTimeout(p01Timeout))
	for h.session == 0 {
		h.hold = p01Hold(t, client, path)
		_, stat, err := observer.Get(h.hold.Path())
		if err == zk.ErrNoNode { // a busy machine loses a session of 3 s
			require.ErrorIs(t, h.hold.Err(), framework.ErrSessionLost)
			continue
		}
		require.NoError(t, err)
		h.session = stat.EphemeralOwner
	}
	h.work = h.hold.Context(context.Background())
}

// disconnect disconnects the holder and waits for the end of the hold.
func (h *p01Holder) disconnect() {
	time.Sleep(h.phase)
	h.proxy.Blackhole(true)
	h.answered = time.Now()
	for until := h.hold.ValidUntil(); !until.IsZero(); until = h.hold.ValidUntil() {
		h.ended = until // later calls report the loss, as the next one does here
		time.Sleep(time.Until(until))
	}
	<-h.hold.Done()
	h.err = h.hold.Err()
}

// p01Closed returns the time at which the server ended each session, according to its transaction
// log.
func p01Closed(t *testing.T, server *ensemble.Server) map[int64]time.Time {
	conf, err := server.Command(testzk.Context(t), "conf")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(conf, "dataLogDir=")
	require.True(t, ok, "%s", conf)
	dir, _, _ := strings.Cut(rest, "\n")
	logs, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "log.*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs, "no transaction log in %s", dir)
	closed := map[int64]time.Time{}
	for _, name := range logs {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		txns, err := p01Transactions(data)
		require.NoError(t, err, "%s", name)
		for _, txn := range txns {
			if txn.Type == p01CloseSession {
				closed[txn.Session] = time.UnixMilli(txn.Millis)
			}
		}
	}
	return closed
}

const p01CloseSession = -11

// p01Txn is the header of a transaction in a log.
type p01Txn struct {
	Session      int64
	Cxid         int32
	Zxid, Millis int64
	Type         int32
}

// p01Transactions reads a transaction log: a header, then for each transaction a checksum, a
// length, so many bytes and a 'B'. The rest of the file is zero.
func p01Transactions(log []byte) (txns []p01Txn, err error) {
	const header, frame = 16, 12
	if len(log) == 0 {
		return nil, nil // the log is new
	}
	if len(log) < header || string(log[:4]) != "ZKLG" {
		return nil, errors.New("not a transaction log")
	}
	for log = log[header:]; len(log) >= frame; {
		size := int(binary.BigEndian.Uint32(log[8:]))
		if size == 0 || frame+size >= len(log) || log[frame+size] != 'B' {
			break // may be written at this moment, and incomplete
		}
		var txn p01Txn
		if err := binary.Read(bytes.NewReader(log[frame:frame+size]), binary.BigEndian, &txn); err != nil {
			return nil, err
		}
		txns, log = append(txns, txn), log[frame+size+1:]
	}
	return txns, nil
}
