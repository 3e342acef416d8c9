package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// asked sends a request and returns a channel for its reply.
func asked(c *client, r Request) <-chan Reply {
	replies := make(chan Reply, 2) // room for one reply too many
	c.Ask(r, func(r Reply) { replies <- r })
	return replies
}

func await(t *testing.T, replies <-chan Reply) Reply {
	t.Helper()
	select {
	case r := <-replies:
		return r
	case <-time.After(testTimeout):
		require.FailNow(t, "no reply to the request")
		return Reply{}
	}
}

func TestRequestsAreOnlySentAfterAdmit(t *testing.T) {
	s := serveByHand(t)
	c := connectByHand(t, Config{}, s.addr())
	require.False(t, c.Admitted())
	require.ErrorIs(t, await(t, asked(c, Sync("/"))).Err(), zk.ErrNoServer, "there is no connection yet")
	c.awaitSession(t, 7)
	require.ErrorIs(t, await(t, asked(c, Sync("/"))).Err(), zk.ErrNoServer, "the connection is not admitted")
	c.Admit()
	require.True(t, c.Admitted())
	reply := asked(c, Exists("/a", false))
	f := <-s.requests
	require.Equal(t, int32(opExists), f.op)
	s.answers <- f
	require.ErrorIs(t, await(t, reply).Err(), zk.ErrNoNode)

	reply = asked(c, Sync("/"))
	<-s.requests // it is never answered
	s.drop(0)
	require.ErrorIs(t, await(t, reply).Err(), zk.ErrConnectionClosed)
	require.Empty(t, reply, "done was called twice")
	eventually(t, func() bool { return s.accepted() == 2 }, "no reconnect")
	c.awaitSession(t, 7)
	require.ErrorIs(t, await(t, asked(c, Sync("/"))).Err(), zk.ErrNoServer, "no Admit on the new connection")
	c.Admit()
	require.Equal(t, int32(opMulti), (<-s.requests).op, "the first request after a reconnect is a transaction")
	c.Kill()
	require.ErrorIs(t, await(t, asked(c, Sync("/"))).Err(), zk.ErrNoServer)
}

func TestRequestsFindTheirReplies(t *testing.T) {
	s := serve(t, func(p *peer) { p.answerAll(7, long) })
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	var all sync.WaitGroup
	var wrong atomic.Int32
	for i := range 20 {
		all.Go(func() {
			for range 50 {
				if r := await(t, asked(c, Sync(fmt.Sprint("/", i)))); r.Err() != nil {
					wrong.Add(1)
				}
				if r := await(t, asked(c, Exists("/a", false))); r.Err() != zk.ErrNoNode {
					wrong.Add(1)
				}
				if r := await(t, asked(c, Delete("/a", -1))); r.Err() != nil || r.Zxid != 1 {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, wrong.Load())
}

// A caller of Ask must not wait for a server that does not read.
func TestAskDoesNotWaitForASocketThatIsFull(t *testing.T) {
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		stall(p)
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	var all []<-chan Reply
	for range 40 {
		all = append(all, asked(c, SetData("/a", make([]byte, 1<<20), -1)))
	}
	c.Kill()
	for _, replies := range all {
		require.ErrorIs(t, await(t, replies).Err(), zk.ErrConnectionClosed)
	}
}

func TestNoRequestIsSentAfterTheEndOfTheSession(t *testing.T) {
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		for f, ok := p.next(); ok; f, ok = p.next() {
			if f.op != opCloseSession {
				p.answer(f, 1) // the end is never confirmed
			}
		}
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { ended <- c.EndSession(ctx) }()
	eventually(t, func() bool {
		return await(t, asked(c, Sync("/"))).Err() == zk.ErrNoServer
	}, "requests are still sent")
	cancel()
	require.False(t, <-ended)
}

func TestRequestNumbersWrapAroundBelowTheNumberOfCloseSession(t *testing.T) {
	l := newLink(&pieces{}, unstarted("a:1"), "a:1", 0)
	l.open, l.nextXid = true, lastXid-1
	l.out.busy = true // so that nothing is written
	for range 3 {
		require.True(t, l.ask(Sync("/"), func(Reply) {}))
	}
	require.Equal(t, []int32{lastXid - 1, lastXid, firstXid}, xids(l.waiting))
}

// A server takes a transaction of a former connection for the answer to a request of this one if the
// session and the number are the same.
func TestNumbersOfRequestsGoOnAfterAReconnect(t *testing.T) {
	s := serveByHand(t)
	c := connect(t, Config{}, s.addr())
	var last int32
	for i := range 3 {
		eventually(t, func() bool { return s.accepted() == i+1 && c.Admitted() }, "no connection")
		asked(c, Delete("/a", -1))
		for op := int32(0); op != opDelete; {
			f := <-s.requests
			require.Greater(t, f.xid, last)
			last, op = f.xid, f.op
		}
		s.drop(i)
		eventually(t, func() bool { _, ended := c.connections(); return ended == i+1 }, "no disconnect")
	}
}

// A connection made by the program may have no buffer. A caller of Ask must not wait for one that
// is not read.
func TestAskDoesNotWaitForAConnectionWithoutABuffer(t *testing.T) {
	s := serve(t, func(p *peer) { p.answerAll(7, long) })
	c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		real, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close(); real.Close() })
		go func() { _, _ = io.Copy(theirs, real) }()
		go func() {
			b := make([]byte, 1<<10)
			for range 2 { // the connect request and the first request after it
				n, _ := theirs.Read(b)
				_, _ = real.Write(b[:n])
			}
		}()
		return ours, nil
	}}, s.addr())
	c.awaitSession(t, 7)
	require.NoError(t, await(t, asked(c, Sync("/"))).Err(), "the last request that the server reads")
	reply := asked(c, Sync("/"))
	c.Kill()
	require.ErrorIs(t, await(t, reply).Err(), zk.ErrConnectionClosed)
}

func TestFramesPutDuringAWriteAreWrittenInOnePiece(t *testing.T) {
	o := newOutbox(nil)
	require.True(t, o.put([]byte("a")), "the first caller must start")
	first, _ := o.take(maxKept)
	require.False(t, o.put([]byte("b")))
	require.False(t, o.put([]byte("c")))
	require.False(t, o.finish(first))
	second, _ := o.take(maxKept)
	require.Equal(t, "bc", string(second))
	require.True(t, o.finish(second))
	require.True(t, o.put(make([]byte, maxKept+1)))
	_, ok := o.take(maxKept)
	require.False(t, ok, "there is more than maxKept")
	large, _ := o.take(maxKept + 1)
	require.True(t, o.finish(large))
	require.LessOrEqual(t, cap(o.spare), maxKept, "a large buffer was kept")
}

func TestMalformedReplyIsAnError(t *testing.T) {
	stat := make([]byte, 68)
	for name, row := range map[string]struct {
		whole []byte
		parse func(Reply) error
	}{
		"stat": {stat, func(r Reply) error { _, err := r.Stat(); return err }},
		"data": {append([]byte{0, 0, 0, 1, 'x'}, stat...), func(r Reply) error { _, _, err := r.Data(); return err }},
		"children": {append([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'x'}, stat...),
			func(r Reply) error { _, _, err := r.Children(); return err }},
		"path": {[]byte{0, 0, 0, 2, '/', 'a'}, func(r Reply) error { _, err := r.Path(); return err }},
		"ACL": {append([]byte{0, 0, 0, 1, 0, 0, 0, 31, 0, 0, 0, 1, 's', 0, 0, 0, 1, 'i'}, stat...),
			func(r Reply) error { _, _, err := r.ACL(); return err }},
		"results": {[]byte{0, 0, 0, opDelete, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff},
			func(r Reply) error { _, err := r.Results([]any{&zk.DeleteRequest{}}); return err }},
	} {
		require.NoError(t, row.parse(Reply{body: row.whole}), name)
		for n := range row.whole[:len(row.whole)-1] {
			if name == "results" && n >= len(row.whole)-4 {
				break // bytes after the end mark are ignored
			}
			require.ErrorIs(t, row.parse(Reply{body: row.whole[:n]}), errMalformed, "%s cut after %d", name, n)
		}
		require.ErrorIs(t, row.parse(Reply{body: row.whole, err: zk.ErrNoAuth}), zk.ErrNoAuth, name)
	}
	huge := binary.BigEndian.AppendUint32(nil, math.MaxInt32)
	_, _, err := Reply{body: huge}.Children()
	require.ErrorIs(t, err, errMalformed)
	for _, count := range []int32{-1, math.MinInt32, math.MaxInt32, 7} { // 7 entries are more than the reply has
		body := append(binary.BigEndian.AppendUint32(nil, uint32(count)), stat...)
		_, _, err = Reply{body: body}.ACL()
		require.ErrorIs(t, err, errMalformed, count)
	}
	unknown := append([]byte{0, 0, 0, 99, 0, 0, 0, 0, 0}, huge...)
	_, err = Reply{body: unknown}.Results([]any{&zk.DeleteRequest{}})
	require.ErrorIs(t, err, errMalformed)
	_, err = Multi([]any{"nonsense"})
	require.ErrorContains(t, err, "string is no part of a transaction")
}

// The caller of a transaction or of reads relies on one result for each of them, of its own kind.
func TestResultsOfOtherOperationsAreMalformed(t *testing.T) {
	part := func(kind int32, failed int32, body ...byte) []byte {
		head := binary.BigEndian.AppendUint32(nil, uint32(kind))
		return append(binary.BigEndian.AppendUint32(append(head, 0), uint32(failed)), body...)
	}
	end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	stat, name := make([]byte, 68), []byte{0, 0, 0, 1, 'a'}
	noNode, fine := []byte{0xff, 0xff, 0xff, 0x9b}, make([]byte, 4)
	set := part(opSetData, 0, stat...)
	data := part(opGetData, 0, append(slices.Clone(name), stat...)...)
	for _, row := range []struct {
		name  string
		parts [][]byte
		multi bool // of one write; else of one read
		want  error
	}{
		{"as asked", [][]byte{set}, true, nil},
		{"refused", [][]byte{part(opError, -101, noNode...)}, true, zk.ErrNoNode},
		{"none", nil, true, errMalformed},
		{"one more", [][]byte{set, set}, true, errMalformed},
		{"one more, refused", [][]byte{part(opError, 0, fine...), part(opError, -101, noNode...)}, true, errMalformed},
		{"of a delete", [][]byte{part(opDelete, 0)}, true, errMalformed},
		{"of a create", [][]byte{part(opCreate, 0, name...)}, true, errMalformed},
		{"an error that is none", [][]byte{part(opError, 0, fine...)}, true, errMalformed},
		{"as asked", [][]byte{data}, false, nil},
		{"none", nil, false, errMalformed},
		{"one more", [][]byte{data, data}, false, errMalformed},
		{"of a list", [][]byte{part(opGetChildren, 0, 0, 0, 0, 0)}, false, errMalformed},
		{"an error that is none", [][]byte{part(opError, 0, fine...)}, false, errMalformed},
	} {
		r := Reply{body: append(slices.Concat(row.parts...), end...)}
		var err error
		if row.multi {
			_, err = r.Results([]any{&zk.SetDataRequest{}})
		} else {
			_, err = r.Readings([]Read{{Path: "/a"}})
		}
		require.ErrorIs(t, err, row.want, "%s, %v", row.name, row.multi)
	}
}

func TestErrorsAreThoseOfPackageZKIfItHasThem(t *testing.T) {
	require.NoError(t, code(0))
	require.Equal(t, zk.ErrNoNode, code(-101))
	require.Equal(t, zk.ErrSessionMoved, code(-118))
	require.Equal(t, Code(-4), code(-4))
	require.ErrorContains(t, code(-127), "error -127 of the server")
}
