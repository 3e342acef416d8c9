package conn

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// stall reads until the client hangs up.
func stall(p *peer) {
	for _, ok := p.read(); ok; _, ok = p.read() {
	}
}

func TestHandshakeWithABadServerIsBoundedAndNamed(t *testing.T) {
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	passwordTooLong := greeting(1, long)
	binary.BigEndian.PutUint32(passwordTooLong[16:], 0x7fffffff)
	for name, row := range map[string]struct {
		says   []byte
		closes bool
		want   string
	}{
		"silence":                   {want: "no reply to the connect request"},
		"part of a length":          {says: []byte{0, 0}, want: "no reply to the connect request"},
		"a length and nothing":      {says: length(36), want: "short reply to the connect request"},
		"half a reply":              {says: append(length(36), greeting(1, long)[:20]...), want: "short reply to the connect request"},
		"a huge length":             {says: length(0x7fffffff), want: "2147483647 bytes long: not a ZooKeeper server"},
		"a negative length":         {says: length(0xffffffff), want: "not a ZooKeeper server"},
		"another protocol":          {says: []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), want: "not a ZooKeeper server"},
		"too short a reply":         {says: append(length(16), make([]byte, 16)...), want: "16 bytes long: not a ZooKeeper server"},
		"a password out of bounds":  {says: append(length(36), passwordTooLong...), want: "password of 2147483647 bytes"},
		"hanging up":                {closes: true, want: "no reply to the connect request: EOF"},
		"hanging up after a length": {says: length(36), closes: true, want: "short reply to the connect request: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var healed atomic.Bool
				s, dial := serveInMemory(t, func(p *peer) {
					if healed.Load() {
						p.obey(7, long)
						return
					}
					p.read()
					_, _ = p.Write(row.says)
					if !row.closes {
						stall(p)
					}
				})
				c := connect(t, Config{ConnectTimeout: 50 * time.Millisecond, Dial: dial}, "a:1")
				eventually(t, func() bool { return c.Trouble() != nil && s.accepted() > 1 }, "the first attempt never ended")
				require.ErrorContains(t, c.Trouble(), row.want)
				require.ErrorContains(t, c.Trouble(), "a:1: ")
				require.Zero(t, c.Info())
				healed.Store(true)
				c.awaitSession(t, 7)
				require.NoError(t, c.Trouble(), "after a success")
			})
		})
	}
}

func TestHandshakeIsBoundedByTheTimeoutThatTheServerGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serveInMemory(t, func(p *peer) {
			if p.number == 0 {
				p.welcome(7, 150*time.Millisecond) // then hangs up
				return
			}
			stall(p)
		})
		c := connect(t, Config{SessionTimeout: time.Hour, ConnectTimeout: time.Hour, Dial: dial}, "a:1")
		eventually(t, func() bool { return s.accepted() > 3 }, "still waiting for a server that says nothing; %v", c.Trouble())
	})
}

// A connection that the program makes itself may have no buffer: to write is to wait for who reads.
func TestHandshakeIsBoundedWhereNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dialServer := serveInMemory(t, func(p *peer) { p.obey(7, long) })
		var dials atomic.Int32
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) > 1 {
				return dialServer(ctx, network, address)
			}
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			return ours, nil
		}
		c := connect(t, Config{ConnectTimeout: 50 * time.Millisecond, Dial: dial}, "a:1")
		c.awaitSession(t, 7)
	})
}

func TestSessionIsKnownOnceGranted(t *testing.T) {
	s := serve(t, func(p *peer) { p.obey(0x1234, 1234*time.Millisecond) })
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 0x1234)
	require.Equal(t, Info{ID: 0x1234, Password: []byte("password of 16 b"), Timeout: 1234 * time.Millisecond}, c.Info())
}

func TestReplyWithoutASessionOrTimeIsAnExpiry(t *testing.T) {
	for name, reply := range map[string][]byte{
		"no session":    make([]byte, 36),
		"no time":       greeting(7, 0),
		"negative time": greeting(7, -time.Second),
		"old server":    make([]byte, 37),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(p *peer) {
				p.read()
				p.write(reply...)
				stall(p)
			})
			c := connect(t, Config{}, s.addr())
			eventually(t, c.expired, "never expired")
			require.True(t, c.Over())
			require.Zero(t, c.Info())
		})
	}
}
