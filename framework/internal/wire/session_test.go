package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestSwappedSessionIsAnExpiryAndTheEnd(t *testing.T) {
	s := serve(t, func(p *peer) {
		if p.number == 0 {
			p.welcome(0x101, long) // then hangs up
			return
		}
		p.obey(0x102, long)
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, func() bool { return c.saw(zk.StateExpired) }, "the other session was taken for ours")
	require.True(t, c.Over())
	require.Equal(t, int64(0x101), c.Info().ID)
	c.awaitRefusal(t)
	require.Equal(t, 2, s.accepted(), "connections")
}

func TestSameSessionSurvivesReconnects(t *testing.T) {
	var mu sync.Mutex
	var asked []int64
	s := serve(t, func(p *peer) {
		request, ok := p.welcome(0x101, long)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, int64At(request, connectRequestSession-lengthSize))
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, func() bool { return s.accepted() > 3 }, "no reconnect")
	require.False(t, c.saw(zk.StateExpired))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []int64{0, 0x101, 0x101}, asked[:3], "the sessions asked for")
}

// Requests are queued while a session that is over for the servers asks for itself on the next of several servers.
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
			p.welcome(0xa, long) // then hangs up
		case 1:
			p.read()
			<-queued
			p.write(make([]byte, 36)...)
			stall(p)
		default:
			if _, ok := p.welcome(0xb, long); !ok {
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
	eventually(t, func() bool { return c.saw(zk.StateDisconnected) }, "never disconnected")
	results := make(chan error, requests)
	var started sync.WaitGroup
	for range requests {
		started.Add(1)
		go func() {
			started.Done()
			_, err := c.Driver().Create("/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			results <- err
		}()
	}
	started.Wait()
	close(queued)
	for range requests {
		require.Error(t, <-results)
	}
	c.awaitRefusal(t)
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, created, "of %d requests were carried out in another session", requests)
	require.Equal(t, 2, connections)
}

// deafAfter fails each write after the first few, as a socket does that the other side has reset.
type deafAfter struct {
	net.Conn
	writes int
}

func (d *deafAfter) Write(b []byte) (int, error) {
	if d.writes--; d.writes < 0 {
		return 0, errors.New("broken pipe")
	}
	return d.Conn.Write(b)
}

func TestFailureToPresentCredentialsAgainDoesNotWedge(t *testing.T) {
	for name, row := range map[string]struct {
		hangsUp bool
		writes  int
	}{
		"the server hangs up":          {hangsUp: true, writes: 1 << 30},
		"the write fails":              {writes: 1},
		"the second credential's does": {writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const bad = 4 // connections after the first
			dials := 0    // all on one goroutine
			s := serve(t, func(p *peer) {
				if row.hangsUp && p.number > 0 && p.number <= bad {
					p.welcome(7, long)
					return
				}
				p.obey(7, long)
			})
			c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if dials++; err == nil && dials > 1 && dials <= bad+1 {
					conn = &deafAfter{conn, row.writes}
				}
				return conn, err
			}}, s.addr())
			require.NoError(t, c.Driver().AddAuth("digest", []byte("a:b")))
			require.NoError(t, c.Driver().AddAuth("digest", []byte("c:d")))
			s.drop(0)
			eventually(t, func() bool {
				_, _, err := c.Driver().Exists("/a")
				return err == nil && s.accepted() > bad
			}, "the driver is wedged after %d connections", s.accepted())
		})
	}
}

func (s *server) drop(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[number].Close()
}

func TestWriteErrorIsAClosedConnection(t *testing.T) {
	s := serve(t, func(p *peer) { p.obey(7, long) })
	first := true
	c := connect(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if first && err == nil {
			conn = &deafAfter{conn, 1}
		}
		first = false
		return conn, err
	}}, s.addr())
	c.awaitSession(t, 7)
	_, _, err := c.Driver().Exists("/a")
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
}

func TestKillFailsRequestsAndDialsNoMore(t *testing.T) {
	arrived := make(chan struct{})
	s := serve(t, func(p *peer) {
		if _, ok := p.welcome(7, long); !ok {
			return
		}
		p.next()
		close(arrived)
		stall(p)
	})
	c := connect(t, Config{}, s.addr())
	result := make(chan error, 1)
	go func() {
		_, _, err := c.Driver().Exists("/a")
		result <- err
	}()
	<-arrived
	c.Kill()
	require.ErrorIs(t, <-result, zk.ErrConnectionClosed)
	c.awaitRefusal(t)
	require.Equal(t, 1, s.accepted())
	require.False(t, c.saw(zk.StateExpired))
}

func TestReplyOfImpossibleLengthCostsTheConnectionAndNotTheProcess(t *testing.T) {
	s := serve(t, func(p *peer) {
		if p.number > 0 {
			p.obey(7, long)
			return
		}
		p.welcome(7, long)
		p.write(0xff, 0xff, 0xff, 0xff)
		p.next()
	})
	c := connect(t, Config{}, s.addr())
	eventually(t, func() bool { return s.accepted() == 2 && c.Driver().State() == zk.StateHasSession }, "no new connection")
	require.Equal(t, int64(7), c.Info().ID)
}

func TestDialerThatReturnsNothingIsAnError(t *testing.T) {
	c := connect(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, nil }}, "a.test:2181")
	eventually(t, func() bool { return c.Trouble() != nil }, "no trouble")
	require.ErrorContains(t, c.Trouble(), "neither a connection nor an error")
}
