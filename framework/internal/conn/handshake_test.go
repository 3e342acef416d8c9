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

// stall reads until the client closes the connection.
func stall(p *peer) {
	for _, ok := p.read(); ok; _, ok = p.read() {
	}
}

func TestHandshakeWithABadServerIsLimitedAndReported(t *testing.T) {
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	short := append(length(16), make([]byte, 16)...)
	half := connectReply(1, long)[:20]
	passwordTooLong := connectReply(1, long)
	binary.BigEndian.PutUint32(passwordTooLong[16:], 0x7fffffff)
	for name, row := range map[string]struct {
		sends  []byte
		closes bool
		want   string
	}{
		"silence":              {want: "no reply to the connect request"},
		"part of a length":     {sends: []byte{0, 0}, want: "no reply to the connect request"},
		"a length and nothing": {sends: length(36), want: "short reply to the connect request"},
		"half a reply":         {sends: append(length(36), half...), want: "short reply to the connect request"},
		"a huge length":        {sends: length(0x7fffffff), want: "2147483647 bytes long: not a ZooKeeper server"},
		"a negative length":    {sends: length(0xffffffff), want: "not a ZooKeeper server"},
		"another protocol":     {sends: []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), want: "not a ZooKeeper server"},
		"a short reply":        {sends: short, want: "16 bytes long: not a ZooKeeper server"},
		"a password too long":  {sends: append(length(36), passwordTooLong...), want: "password of 2147483647 bytes"},
		"closing":              {closes: true, want: "no reply to the connect request: EOF"},
		"a length and closing": {sends: length(36), closes: true, want: "short reply to the connect request: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var healed atomic.Bool
				s, dial := serveInMemory(t, func(p *peer) {
					if healed.Load() {
						p.answerAll(7, long)
						return
					}
					p.read()
					_, _ = p.Write(row.sends)
					if !row.closes {
						stall(p)
					}
				})
				c := connect(t, Config{ConnectTimeout: 50 * time.Millisecond, Dial: dial}, "a:1")
				eventually(t, func() bool {
					return c.Failures() != nil && s.accepted() > 1
				}, "the first attempt does not end")
				require.ErrorContains(t, c.Failures(), row.want)
				require.ErrorContains(t, c.Failures(), "a:1: ")
				require.Zero(t, c.Info())
				healed.Store(true)
				c.awaitSession(t, 7)
				require.NoError(t, c.Failures(), "after a success")
			})
		})
	}
}

func TestHandshakeIsLimitedByTheGrantedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serveInMemory(t, func(p *peer) {
			if p.number == 0 {
				p.grant(7, 150*time.Millisecond) // then closes the connection
				return
			}
			stall(p)
		})
		c := connect(t, Config{SessionTimeout: time.Hour, ConnectTimeout: time.Hour, Dial: dial}, "a:1")
		eventually(t, func() bool { return s.accepted() > 3 }, "still waiting for a silent server; %v", c.Failures())
	})
}

// A connection made by the program may have no buffer. Then a write waits for the reader.
func TestHandshakeIsLimitedWhenThePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dialServer := serveInMemory(t, func(p *peer) { p.answerAll(7, long) })
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
	s := serve(t, func(p *peer) { p.answerAll(0x1234, 1234*time.Millisecond) })
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 0x1234)
	require.Equal(t, Info{
		ID: 0x1234, Password: []byte("password of 16 b"),
		Timeout: 1234 * time.Millisecond, Longest: 1234 * time.Millisecond,
	}, c.Info())
}

func TestConnectReplyWithoutSessionOrTimeoutMeansExpiry(t *testing.T) {
	for name, reply := range map[string][]byte{
		"no session":       make([]byte, 36),
		"no timeout":       connectReply(7, 0),
		"negative timeout": connectReply(7, -time.Second),
		"old server":       make([]byte, 37),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(p *peer) {
				p.read()
				p.write(reply...)
				stall(p)
			})
			c := connect(t, Config{}, s.addr())
			eventually(t, c.expired, "not expired")
			require.True(t, c.over())
			require.Zero(t, c.Info())
		})
	}
}
