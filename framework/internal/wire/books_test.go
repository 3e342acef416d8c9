package wire

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manual is a server whose requests and answers the test hands over one by one.
type manual struct {
	*server
	requests chan frame
	answers  chan frame
}

func serveByHand(t *testing.T) *manual {
	m := &manual{requests: make(chan frame), answers: make(chan frame)}
	done := make(chan struct{})
	m.server = serve(t, func(p *peer) {
		if _, ok := p.welcome(7, long); !ok {
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

func TestProvenIsWhenTheLastRequestWasSentThatTheLeaderHasAnswered(t *testing.T) {
	s := serveByHand(t)
	before := time.Now()
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	connected := proven(c)
	require.False(t, connected.Time().Before(before), "the connect request counts")

	ask := func(path string) frame {
		go func() { _, _ = c.Driver().Sync(path) }()
		return <-s.requests
	}
	first := ask("/1")
	between := time.Now()
	second := ask("/2")
	require.Equal(t, connected, proven(c), "nothing was answered yet")

	s.answers <- first
	eventually(t, func() bool { return proven(c) != connected }, "the answer to the first request was not seen")
	require.True(t, proven(c).Time().Before(between), "the second request was not answered")

	answering := time.Now()
	s.answers <- second
	eventually(t, func() bool { return proven(c).Time().After(between) }, "the answer to the second request was not seen")
	require.True(t, proven(c).Time().Before(answering), "it is the time of sending, not of the answer")

	touched := proven(c)
	go func() { _, _, _ = c.Driver().Exists("/") }()
	s.answers <- <-s.requests
	presented := make(chan error, 1)
	go func() { presented <- c.Driver().AddAuth("digest", []byte("a:b")) }()
	s.answers <- <-s.requests
	require.NoError(t, <-presented)
	require.Equal(t, touched, proven(c), "a follower answers reads by itself, and nobody counts credentials")
}

func TestWatchEventsAnswerNothing(t *testing.T) {
	waiting := []request{{xid: 1, op: opSync, sent: Now()}}
	s := &shim{owner: &Conn{}, waiting: waiting}
	s.answered(replyHeader{xid: eventXid, zxid: -1})
	s.answered(replyHeader{xid: 5, zxid: 99})
	require.True(t, proven(s.owner).IsZero())
	require.Zero(t, s.owner.seen())
	s.answered(replyHeader{xid: eventXid, zxid: 98})
	require.EqualValues(t, 98, s.owner.seen(), "what was told must not be unknown to the next server")
	require.Equal(t, waiting, s.waiting)
}

func TestAnswersOutOfOrderFindTheirRequests(t *testing.T) {
	s := &shim{owner: &Conn{}}
	s.owner.contact.begin(at(0))
	for xid := range int32(3) {
		s.waiting = append(s.waiting, request{xid: xid, op: opSync, sent: at(time.Duration(xid) * time.Second)})
	}
	s.answered(replyHeader{xid: 2, zxid: 0})
	require.Equal(t, []int32{0, 1}, xids(s.waiting))
	s.answered(replyHeader{xid: 0, zxid: 0})
	require.Equal(t, []int32{1}, xids(s.waiting))
	require.Equal(t, at(0), proven(s.owner), "without a timeout nothing counts but the connect request")
}

func xids(waiting []request) (all []int32) {
	for _, r := range waiting {
		all = append(all, r.xid)
	}
	return all
}

func TestWatchesAreSetAgainAsOfTheConnectionBefore(t *testing.T) {
	var mu sync.Mutex
	var connects, sets []int64
	note := func(list *[]int64, value int64) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, value)
	}
	s := serve(t, func(p *peer) {
		asked, ok := p.welcome(7, long)
		if !ok {
			return
		}
		note(&connects, int64At(asked, connectRequestZxid-lengthSize))
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
		c.Admit()
		require.NoError(t, await(t, asked(c, Sync("/"))).Err())
		require.NoError(t, await(t, asked(c, SetWatches(Watches{Data: []string{"/a"}}))).Err())
		s.drop(number)
		eventually(t, func() bool { return !c.Admitted() }, "the connection is not noticed to be gone")
	}
	eventually(t, func() bool { return s.accepted() == 4 }, "no reconnect")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []int64{0, 100, 500}, connects[:3], "the zxids that connect requests tell")
	require.Equal(t, []int64{0, 100, 500}, sets, "the zxids as of which watches are set again")
}

func TestElapsedCountsSuspensions(t *testing.T) {
	require.GreaterOrEqual(t, Stamp{at: time.Now().Add(-time.Hour)}.Elapsed(), time.Hour)
	require.Less(t, Now().Elapsed(), patience)
	require.True(t, Stamp{}.IsZero())
	require.False(t, Now().IsZero())
	before := Now()
	PretendSuspension(time.Hour)
	require.GreaterOrEqual(t, before.Elapsed(), time.Hour, "the monotonic clock stood still")
	require.GreaterOrEqual(t, Now().Since(before), time.Hour)
	require.True(t, Now().After(before))
	require.Less(t, Now().Elapsed(), time.Hour)
}
