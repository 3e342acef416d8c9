package conn

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// recording is a connection that records what is done with it.
type recording struct {
	pieces
	written  []byte
	deadline time.Time
}

func (r *recording) Write(b []byte) (int, error) {
	r.written = append(r.written, b...)
	return len(b), nil
}

func (r *recording) SetDeadline(t time.Time) error { return r.SetReadDeadline(t) }

func (r *recording) SetReadDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

// recorded returns a link on a connection with a buffer. No goroutine writes in the background.
func recorded() (*link, *recording) {
	r, c := &recording{}, unstarted("a:1", "b:1")
	c.info.Timeout = time.Minute
	l := newLink(r, c, "a:1", 0)
	l.out.buffered = true
	return l, r
}

// sized returns a request with a frame of so many bytes.
func sized(bytes int) Request {
	empty := SetData("/a", nil, -1)
	return SetData("/a", make([]byte, bytes-len(empty.frame)), -1)
}

func TestSmallRequestOfAnIdleLinkIsWrittenAtOnce(t *testing.T) {
	for _, size := range []int{100, smallFrame} {
		l, r := recorded()
		require.True(t, l.admit(nil))
		require.True(t, l.ask(sized(size), func(Reply) {}))
		require.Len(t, r.written, size)
		require.True(t, l.ask(sized(size), func(Reply) {}))
		require.Len(t, r.written, size, "behind a request that waits, others may follow")
		<-l.out.wake
	}
	l, r := recorded()
	require.True(t, l.admit(nil))
	require.True(t, l.ask(sized(smallFrame+1), func(Reply) {}))
	require.Empty(t, r.written, "the socket may not take it at once")
	<-l.out.wake
}

func TestFirstRequestThatWaitsLimitsTheReadUnderWay(t *testing.T) {
	l, r := recorded()
	l.lastRead = time.Now().Add(-time.Hour)
	require.True(t, l.admit(nil))
	require.True(t, l.ask(Sync("/"), func(Reply) {}))
	_, limit := l.owner.limits()
	require.Equal(t, l.lastRead.Add(time.Minute*2/3), r.deadline, "the silence ends before the reply is due")
	l, r = recorded()
	require.True(t, l.admit(nil))
	require.True(t, l.ask(Sync("/"), func(Reply) {}))
	require.Equal(t, l.waiting[0].sent.Time().Add(limit), r.deadline)
	first := r.deadline
	require.True(t, l.ask(Sync("/"), func(Reply) {}))
	require.Equal(t, first, r.deadline)
}

func TestClosedLinkTakesNoRequests(t *testing.T) {
	l, r := recorded()
	require.NoError(t, l.Close())
	var sent, first error
	l.send(Sync("/"), func(r Reply) { sent = r.Err() })
	require.ErrorIs(t, sent, zk.ErrConnectionClosed)
	require.False(t, l.ask(Sync("/"), func(Reply) { t.Error("it was not sent") }))
	l.owner.link = l
	l.owner.Admit(Sync("/").Then(func(r Reply) { first = r.Err() }))
	require.ErrorIs(t, first, zk.ErrNoServer)
	require.False(t, l.owner.Admitted())
	require.Empty(t, r.written)
}

func TestEndOfASessionIsAskedForOnceOnALink(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l, _ := recorded()
	require.False(t, l.end(ended), "not confirmed")
	<-l.out.wake
	asked := l.out.size()
	require.Equal(t, len(closeSession), asked)
	close(l.endConfirmed)
	require.False(t, l.end(t.Context()), "another call asks for it")
	require.Equal(t, asked, l.out.size())
}

// The reader closes the link right after the confirmation.
func TestConfirmationCountsOnAClosedLink(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a select picks one of several ready channels at random
		for _, ctx := range []context.Context{t.Context(), ended} {
			l, _ := recorded()
			close(l.endConfirmed)
			require.NoError(t, l.Close())
			require.True(t, l.end(ctx))
		}
	}
}

func TestOnlyAReplyThatIsDueIsOverdue(t *testing.T) {
	l, _ := recorded()
	require.False(t, l.replyOverdue(os.ErrDeadlineExceeded), "no request waits: the server is silent")
	require.True(t, l.admit(nil))
	require.True(t, l.ask(Sync("/"), func(Reply) {}))
	require.True(t, l.replyOverdue(os.ErrDeadlineExceeded))
	require.False(t, l.replyOverdue(io.EOF))
	l.owner.tolerateSlow = true
	require.False(t, l.replyOverdue(os.ErrDeadlineExceeded), "there is no limit for replies")
}

func TestLargeOrLaterRequestIsWrittenInTheBackground(t *testing.T) {
	l, r := recorded()
	l.start(false)
	require.Len(t, l.out.wake, 1, "the caller does not write")
	require.Empty(t, r.written)
}

func TestRequestsTogetherAreWrittenAtOnceIfTheyAreSmall(t *testing.T) {
	for _, size := range []int{100, smallFrame / 2} {
		l, r := recorded()
		require.True(t, l.admit(nil))
		l.owner.link = l
		pair := func() {
			for range 2 {
				l.owner.Ask(sized(size), func(Reply) {})
			}
			require.Zero(t, len(r.written)%(2*size), "a request is written alone")
		}
		l.owner.Together(pair)
		require.Len(t, r.written, 2*size)
		l.owner.Together(pair)
		require.Len(t, r.written, 2*size, "behind a request that waits, others may follow")
		<-l.out.wake
	}
	l, r := recorded()
	require.True(t, l.admit(nil))
	l.owner.link = l
	l.owner.Together(func() {
		for range 2 {
			l.owner.Ask(sized(smallFrame/2+1), func(Reply) {})
		}
	})
	require.Empty(t, r.written, "the socket may not take them at once")
	<-l.out.wake
}

func TestFlushWritesAllOrNothing(t *testing.T) {
	l, r := recorded()
	require.True(t, l.out.put(make([]byte, smallFrame+1)))
	require.False(t, l.flush(smallFrame), "it is larger than what may be written here")
	require.Empty(t, r.written)
	require.True(t, l.flush(smallFrame+1))
	require.Len(t, r.written, smallFrame+1)
	require.True(t, l.out.delay())
	require.True(t, l.flush(smallFrame), "nothing remains")
	require.True(t, l.out.put(nil), "the next caller must start")
}
