package conn

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// silentFirst grants a session on the first connection and then sends nothing more. It answers
// everything on later ones.
func silentFirst(id int64, timeout time.Duration) func(*peer) {
	return func(p *peer) {
		if p.number > 0 {
			p.answerAll(id, timeout)
			return
		}
		p.grant(id, timeout)
		for _, ok := p.read(); ok; _, ok = p.read() {
		}
	}
}

func TestConnectionToASilentServerIsClosedWhileTheSessionIsStillReliable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 9 * time.Second
		s, dial := serveInMemory(t, silentFirst(7, timeout))
		c := connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1", "b:1")
		c.awaitSession(t, 7)
		connected := proven(c)
		eventually(t, func() bool { return s.accepted() == 2 }, "the client stays with a silent server")
		require.Equal(t, 2, s.accepted())
		require.LessOrEqual(t, connected.Elapsed(), timeout/3+10*time.Millisecond,
			"a heartbeat and its reply have a sixth each")
	})
}

// Another server may be behind the same address.
func TestConnectionToASilentOnlyServerIsClosedWhileTheSessionIsStillReliable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 9 * time.Second
		s, dial := serveInMemory(t, silentFirst(7, timeout))
		c := connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1")
		c.awaitSession(t, 7)
		c.Ask(Sync("/"), func(Reply) {}) // the heartbeat that is not answered
		eventually(t, func() bool { return s.accepted() == 2 }, "the client stays on a silent connection")
		require.Equal(t, 2, s.accepted())
	})
}

func TestSlowReplyIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		s, dial := serveInMemory(t, func(p *peer) {
			p.grant(7, timeout)
			for f, ok := p.next(); ok; f, ok = p.next() {
				p.trickle(f, 2*time.Second)
			}
		})
		c := connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1", "b:1")
		c.awaitSession(t, 7)
		require.NoError(t, await(t, asked(c, Sync("/"))).Err())
		require.Equal(t, 1, s.accepted())
	})
}

// trickle sends its answer byte by byte over the given time.
func (p *peer) trickle(f frame, over time.Duration) {
	body := append(binary.BigEndian.AppendUint32(nil, 1), '/')
	reply := binary.BigEndian.AppendUint32(nil, uint32(f.xid))
	reply = append(append(reply, make([]byte, 12)...), body...)
	whole := append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...)
	tick := time.NewTicker(over / time.Duration(len(whole)))
	defer tick.Stop()
	for _, b := range whole {
		<-tick.C
		_, _ = p.Write([]byte{b})
	}
}

func TestConnectionIsKeptIfAllServersAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, slow = 6 * time.Second, 1200 * time.Millisecond
		_, dial := serveInMemory(t, func(p *peer) {
			p.grant(7, timeout)
			for f, ok := p.next(); ok; f, ok = p.next() {
				timer := time.NewTimer(slow)
				<-timer.C
				p.answer(f, 1)
			}
		})
		c := connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1", "b:1")
		c.awaitSession(t, 7)
		lost := await(t, asked(c, Exists("/a", false))).Err()
		require.ErrorIs(t, lost, zk.ErrConnectionClosed, "the first connection to a slow server is closed")
		c.awaitSession(t, 7)
		require.ErrorIs(t, await(t, asked(c, Exists("/a", false))).Err(), zk.ErrNoNode)
		require.NotZero(t, c.logs.FilterMessage("leaving a server that does not answer").Len())
	})
}

func TestHeartbeatsKeepAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 9 * time.Second
		s, dial := serveInMemory(t, func(p *peer) { p.answerAll(7, timeout) })
		c := connect(t, Config{SessionTimeout: timeout, Dial: dial}, "a:1")
		c.awaitSession(t, 7)
		time.Sleep(10 * timeout)
		require.Equal(t, 1, s.accepted())
		require.Less(t, proven(c).Elapsed(), timeout/heartbeatsPerTimeout+time.Second)
	})
}

func TestReplyThatArrivesDuringAPauseOfTheClientIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		event := header(eventXid, 0, 1, 0, int32(zk.EventNodeDataChanged), int32(zk.StateSyncConnected), 0)
		s, dial := serveInMemory(t, func(p *peer) {
			p.grant(7, timeout)
			for f, ok := p.next(); ok; f, ok = p.next() {
				if f.op == opGetData {
					p.write(event[lengthSize:]...)
				}
				p.answer(f, 1)
			}
		})
		c := start(t, &client{pause: timeout / 4}, Config{SessionTimeout: timeout, Dial: dial}, "a:1", "b:1")
		c.awaitSession(t, 7)
		require.NoError(t, await(t, asked(c, Get("/a", true))).Err())
		require.Equal(t, 1, s.accepted())
	})
}
