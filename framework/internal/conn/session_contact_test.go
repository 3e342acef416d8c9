package conn

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// manual is a server that hands each request to the test and gets each answer from it.
type manual struct {
	*server
	requests chan frame
	answers  chan frame
}

func serveByHand(t *testing.T) *manual {
	m := &manual{requests: make(chan frame), answers: make(chan frame)}
	done := make(chan struct{})
	m.server = serve(t, func(p *peer) {
		if _, ok := p.grant(7, long); !ok {
			return
		}
		go func() {
			for {
				select {
				case f := <-m.answers:
					p.answer(f, 1)
				case <-done:
					return
				}
			}
		}()
		for f, ok := p.next(); ok; f, ok = p.next() {
			select {
			case m.requests <- f:
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() { close(done) })
	return m
}

func TestContactIsTheTimeOfSendingOfTheLastAnsweredRequest(t *testing.T) {
	s := serveByHand(t)
	before := time.Now()
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	connected := proven(c)
	require.False(t, connected.Time().Before(before), "the connect request does not count")

	ask := func(path string) frame {
		c.Ask(Sync(path), func(Reply) {})
		return <-s.requests
	}
	first := ask("/1")
	between := time.Now()
	second := ask("/2")
	require.Equal(t, connected, proven(c), "no request was answered yet")

	s.answers <- first
	eventually(t, func() bool { return proven(c) != connected }, "the answer to the first request does not count")
	require.True(t, proven(c).Time().Before(between), "the second request was not answered")

	answering := time.Now()
	s.answers <- second
	eventually(t, func() bool {
		return proven(c).Time().After(between)
	}, "the answer to the second request does not count")
	require.True(t, proven(c).Time().Before(answering), "want the time of sending, not of the answer")

	earlier := proven(c)
	for _, r := range []Request{Exists("/", false), authenticate(Credential{"digest", []byte("a:b")})} {
		reply := asked(c, r)
		s.answers <- <-s.requests
		await(t, reply)
	}
	require.Equal(t, earlier, proven(c), "a follower answers reads and credentials by itself")
}

func TestEventIsNoReply(t *testing.T) {
	event := append(header(eventXid, -1, -1, 0), 0, 0, 0, byte(zk.EventNodeDeleted), 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a')
	binary.BigEndian.PutUint32(event, uint32(len(event)-lengthSize))
	later := bytes.Clone(event)
	copy(later[replyZxid:], []byte{0, 0, 0, 0, 0, 0, 0, 98})
	c := unstarted("a:1")
	l := newLink(&pieces{stream: slices.Concat(event, header(5, 0, 99, 0), later), sizes: []int{1000}}, c, "a:1", 0)
	l.waiting = []request{{xid: 1, op: opSync, sent: Now()}}
	require.ErrorIs(t, l.read(), io.EOF)
	require.True(t, proven(c).IsZero())
	require.EqualValues(t, 98, c.lastZxid(), "an event counts, a reply to no request does not")
	require.Equal(t, []int32{1}, xids(l.waiting))
	want := zk.Event{Type: zk.EventNodeDeleted, State: zk.StateSyncConnected, Path: "/a"}
	require.Equal(t, []zk.Event{want, want}, c.cfg.Handler.(*client).events)
}

func TestEventThatCannotBeReadEndsTheConnection(t *testing.T) {
	for _, body := range [][]int32{{}, {2}, {2, 3}, {2, 3, 9}, {2, 3, -5}} {
		stream := header(append([]int32{eventXid, 0, 0, 0}, body...)...)
		l := newLink(&pieces{stream: stream, sizes: []int{1000}}, unstarted("a:1"), "a:1", 0)
		require.ErrorIs(t, l.read(), errMalformed, "%v", body)
	}
	huge := header(eventXid, 0, 0, 0)
	binary.BigEndian.PutUint32(huge, maxReply)
	l := newLink(&pieces{stream: huge, sizes: []int{1000}}, unstarted("a:1"), "a:1", 0)
	require.ErrorContains(t, l.read(), "not a ZooKeeper server")
}

func TestRepliesOutOfOrderReachTheirRequests(t *testing.T) {
	c := unstarted("a:1")
	stream := slices.Concat(header(2, 0, 0, 0), header(0, 0, 0, 0))
	l := newLink(&pieces{stream: stream, sizes: []int{1000}}, c, "a:1", 0)
	c.contact.restart(at(0))
	var answered []int32
	for xid := range int32(3) {
		l.waiting = append(l.waiting, request{
			xid: xid, op: opSync, sent: at(time.Duration(xid) * time.Second),
			done: func(Reply) { answered = append(answered, xid) },
		})
	}
	require.ErrorIs(t, l.read(), io.EOF)
	require.Equal(t, []int32{2, 0}, answered)
	require.Equal(t, []int32{1}, xids(l.waiting))
	require.Equal(t, at(0), proven(c), "without a timeout only the connect request counts")
}

func xids(waiting []request) (all []int32) {
	for _, r := range waiting {
		all = append(all, r.xid)
	}
	return all
}

func TestWatchesAreSetAgainWithTheLastZxidOfTheConnectionBefore(t *testing.T) {
	var mu sync.Mutex
	var connects, sets []int64
	note := func(list *[]int64, value int64) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, value)
	}
	s := serve(t, func(p *peer) {
		asked, ok := p.grant(7, long)
		if !ok {
			return
		}
		note(&connects, int64At(asked, 4))
		for f, ok := p.next(); ok; f, ok = p.next() {
			if f.op == opSetWatches {
				note(&sets, int64At(f.body, 0))
			}
			p.answer(f, int64(100+400*p.number))
		}
	})
	c := connect(t, Config{}, s.addr())
	for number := range 3 {
		eventually(t, func() bool { return s.accepted() == number+1 }, "no reconnect")
		c.awaitSession(t, 7)
		require.NoError(t, await(t, asked(c, Sync("/"))).Err())
		require.NoError(t, await(t, asked(c, SetWatches(Watches{Data: []string{"/a"}}))).Err())
		s.drop(number)
		ended := func() bool { return !c.Admitted() || s.accepted() > number+1 }
		eventually(t, ended, "the end of the connection is not noticed")
	}
	eventually(t, func() bool { return s.accepted() == 4 }, "no reconnect")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []int64{0, 100, 500}, connects[:3], "the zxids in connect requests")
	require.Equal(t, []int64{0, 100, 500}, sets, "the zxids in setWatches requests")
}

// A connection is lost while the watches are being set again: the events of changes before it may be
// lost with it, although the session has seen later transactions.
func TestLostEventsAreReportedOnTheNextConnection(t *testing.T) {
	zxids := make(chan int64, 10)
	s := serve(t, func(p *peer) {
		if _, ok := p.grant(7, long); !ok {
			return
		}
		for f, ok := p.next(); ok; f, ok = p.next() {
			if f.op == opSetWatches {
				zxids <- int64At(f.body, 0)
				if p.number == 1 {
					return
				}
			}
			p.answer(f, int64(100+400*p.number))
		}
	})
	c := connectByHand(t, Config{}, s.addr())
	for number, lastReported := range []int64{0, 100, 100, 900} {
		eventually(t, func() bool { connected, _ := c.connections(); return connected == number+1 }, "no reconnect")
		c.Admit(SetWatches(Watches{Data: []string{"/a"}}))
		require.Equal(t, lastReported, <-zxids, "connection %d", number)
		if number != 1 {
			require.NoError(t, await(t, asked(c, Sync("/"))).Err())
			s.drop(number)
		}
		eventually(t, func() bool { return !c.Admitted() }, "the end of the connection is not noticed")
	}
}

func TestElapsedCountsSuspensions(t *testing.T) {
	require.GreaterOrEqual(t, Stamp{at: time.Now().Add(-time.Hour)}.Elapsed(), time.Hour)
	require.Less(t, Now().Elapsed(), testTimeout)
	require.True(t, Stamp{}.IsZero())
	require.False(t, Now().IsZero())
	before := Now()
	PretendSuspension(time.Hour)
	require.GreaterOrEqual(t, before.Elapsed(), time.Hour, "the monotonic clock stood still")
	require.GreaterOrEqual(t, Now().Since(before), time.Hour)
	require.True(t, Now().After(before))
	require.Less(t, Now().Elapsed(), time.Hour)
	now := Now()
	require.False(t, now.After(now))
}
