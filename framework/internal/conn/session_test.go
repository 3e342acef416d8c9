package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestAnotherSessionInTheConnectReplyMeansExpiry(t *testing.T) {
	s := serve(t, func(p *peer) {
		if p.number == 0 {
			p.grant(0x101, long) // then closes the connection
			return
		}
		p.answerAll(0x102, long)
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, c.expired, "the other session was accepted")
	require.True(t, c.over())
	require.Equal(t, int64(0x101), c.Info().ID)
	c.awaitIdle(t)
	require.Equal(t, 2, s.accepted(), "connections")
}

func TestSameSessionSurvivesReconnects(t *testing.T) {
	var mu sync.Mutex
	var asked []int64
	s := serve(t, func(p *peer) {
		request, ok := p.grant(0x101, long)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, int64At(request, 16))
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, func() bool { return s.accepted() > 3 }, "no reconnect")
	require.False(t, c.expired())
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []int64{0, 0x101, 0x101}, asked[:3], "the sessions in connect requests")
}

// Requests are made after a session has expired on the servers and while the client asks the next
// of several servers for it.
func TestRequestsOfAnExpiredSessionNeverRunInANewOne(t *testing.T) {
	const requests = 40
	var mu sync.Mutex
	connections, created := 0, 0
	queued := make(chan struct{})
	script := func(p *peer) {
		mu.Lock()
		number := connections
		connections++
		mu.Unlock()
		switch number {
		case 0:
			p.grant(0xa, long) // then closes the connection
		case 1:
			p.read()
			<-queued
			p.write(make([]byte, 36)...)
			stall(p)
		default:
			if _, ok := p.grant(0xb, long); !ok {
				return
			}
			for f, ok := p.next(); ok; f, ok = p.next() {
				mu.Lock()
				if f.op == opCreate {
					created++
				}
				mu.Unlock()
				p.answer(f, 1)
			}
		}
	}
	servers := []string{serve(t, script).addr(), serve(t, script).addr(), serve(t, script).addr()}
	c := connect(t, Config{}, servers...)
	eventually(t, func() bool { _, ended := c.connections(); return ended == 1 }, "not disconnected")
	for range requests {
		r := await(t, asked(c, Create("/a", nil, zk.WorldACL(zk.PermAll), zk.FlagEphemeral)))
		require.ErrorIs(t, r.Err(), zk.ErrNoServer, "the request was queued")
	}
	close(queued)
	eventually(t, c.expired, "not expired")
	c.awaitIdle(t)
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, created, "of %d requests were carried out in another session", requests)
	require.Equal(t, 2, connections)
}

// A server that grants more than requested has shown its shortest timeout, at a reconnect too.
func TestEachConnectRequestAsksForTheTimeoutOfTheProgram(t *testing.T) {
	const asked, granted = 4 * time.Second, 20 * time.Second
	requests := make(chan []byte, 2)
	s := serve(t, func(p *peer) {
		request, ok := p.grant(7, granted)
		if !ok {
			return
		}
		requests <- request
		for f, ok := p.next(); ok; f, ok = p.next() {
			p.answer(f, 1)
		}
	})
	c := connect(t, Config{SessionTimeout: asked}, s.addr())
	for number := range 2 {
		requested := binary.BigEndian.Uint32((<-requests)[12:])
		require.EqualValues(t, asked.Milliseconds(), requested, "connection %d", number)
		eventually(t, func() bool { return c.Info().Timeout == granted && c.Admitted() }, "no session")
		c.mu.Lock()
		report := c.contact.reportDelay
		c.mu.Unlock()
		require.Equal(t, granted/shortReportFraction, report)
		s.drop(number)
		eventually(t, func() bool {
			return !c.Admitted() || s.accepted() > number+1
		}, "the end of the connection is not noticed")
	}
}

// failingWrites fails each write after the first few, like a socket that the server has reset.
type failingWrites struct {
	net.Conn
	writes int
}

func (d *failingWrites) Write(b []byte) (int, error) {
	if d.writes--; d.writes < 0 {
		return 0, errors.New("broken pipe")
	}
	return d.Conn.Write(b)
}

func TestCredentialsAreSentUntilAServerAcceptsThem(t *testing.T) {
	for name, row := range map[string]struct {
		closes, refuses bool
		writes          int
	}{
		"the server closes the connection": {closes: true, writes: 1 << 30},
		"the server refuses them for now":  {refuses: true, writes: 1 << 30},
		"the write fails":                  {writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const bad = 4 // connections after the first
			dials := 0    // by one goroutine
			s := serve(t, func(p *peer) {
				failing := p.number > 0 && p.number <= bad
				switch {
				case failing && row.closes:
					p.grant(7, long)
				case failing && row.refuses:
					p.grant(7, long)
					f, _ := p.next()
					p.write(header(f.xid, 0, 0, -7)[lengthSize:]...)
					stall(p)
				default:
					p.answerAll(7, long)
				}
			})
			c := connect(t, Config{
				Credentials: []Credential{{"digest", []byte("a:b")}, {"digest", []byte("c:d")}},
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					if dials++; err == nil && dials > 1 && dials <= bad+1 {
						conn = &failingWrites{conn, row.writes}
					}
					return conn, err
				},
			}, s.addr())
			c.awaitSession(t, 7)
			s.drop(0)
			eventually(t, func() bool {
				return s.accepted() > bad+1 && c.Admitted()
			}, "no connection after %d", s.accepted())
			require.NoError(t, await(t, asked(c, Sync("/"))).Err())
			connected, _ := c.connections()
			require.Equal(t, 2, connected, "connections whose server accepted all credentials")
		})
	}
}

func TestRefusedCredentialEndsTheConn(t *testing.T) {
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		for range 2 {
			f, _ := p.next()
			p.write(header(f.xid, 0, 0, -115)[lengthSize:]...)
		}
		stall(p) // the client closes the connection
	})
	c := connect(t, Config{Credentials: []Credential{{"digest", []byte("a:b")}, {"digest", []byte("c:d")}}}, s.addr())
	eventually(t, func() bool { _, ended := c.connections(); return ended == 1 }, "the connection is not closed")
	require.True(t, c.over())
	connected, _ := c.connections()
	require.Zero(t, connected)
	c.Close()
	require.Equal(t, []error{zk.ErrAuthFailed}, c.ended)
	require.Equal(t, 1, s.accepted())
}

func (s *server) drop(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[number].Close()
}

func TestWriteErrorClosesTheConnection(t *testing.T) {
	s := serve(t, func(p *peer) { p.answerAll(7, long) })
	first := true
	c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if first && err == nil {
			conn = &failingWrites{conn, 1}
		}
		first = false
		return conn, err
	}}, s.addr())
	c.awaitSession(t, 7)
	require.ErrorIs(t, await(t, asked(c, Exists("/a", false))).Err(), zk.ErrConnectionClosed)
}

func TestKillFailsRequestsAndStopsConnecting(t *testing.T) {
	arrived := make(chan struct{})
	s := serve(t, func(p *peer) {
		if _, ok := p.grant(7, long); !ok {
			return
		}
		p.next()
		close(arrived)
		stall(p)
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	result := asked(c, Exists("/a", false))
	<-arrived
	c.Kill()
	require.ErrorIs(t, await(t, result).Err(), zk.ErrConnectionClosed)
	c.awaitIdle(t)
	require.Equal(t, 1, s.accepted())
	require.False(t, c.expired())
}

func TestReplyOfImpossibleLengthLeadsToAReconnect(t *testing.T) {
	s := serve(t, func(p *peer) {
		if p.number > 0 {
			p.answerAll(7, long)
			return
		}
		p.grant(7, long)
		p.write(0xff, 0xff, 0xff, 0xff)
		p.next()
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, func() bool { return s.accepted() == 2 && c.Admitted() }, "no new connection")
	require.Equal(t, int64(7), c.Info().ID)
}

func TestDialerThatReturnsNothingIsAnError(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	c := connect(t, Config{Dial: dial}, "a.test:2181")
	eventually(t, func() bool { return c.Failures() != nil }, "no failure")
	require.ErrorContains(t, c.Failures(), "neither a connection nor an error")
}
