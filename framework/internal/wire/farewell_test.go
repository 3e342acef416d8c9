package wire

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestOnlyABareReplyWithoutAnErrorConfirmsTheEndOfASession(t *testing.T) {
	for name, row := range map[string]struct {
		length, code uint32
		body         []byte
	}{
		"an error":         {length: replyHeaderSize, code: 0xfffffff9},
		"a body":           {length: replyHeaderSize + 3, body: []byte("abc")},
		"a body, withheld": {length: replyHeaderSize + 100},
		"no header":        {length: replyHeaderSize - 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(p *peer) {
				if p.number > 0 {
					p.obey(7, long)
					return
				}
				p.welcome(7, long)
				for f, ok := p.next(); ok; f, ok = p.next() {
					reply := binary.BigEndian.AppendUint32(nil, row.length)
					reply = binary.BigEndian.AppendUint32(reply, uint32(f.xid))
					reply = append(reply, make([]byte, zxidSize)...)
					reply = binary.BigEndian.AppendUint32(reply, row.code)
					_, _ = p.Write(append(reply, row.body...))
				}
			})
			c := connect(t, Config{}, s.addr())
			c.awaitSession(t, 7)
			require.False(t, c.EndSession(t.Context()))
			eventually(t, func() bool { return s.accepted() == 2 }, "the connection is not closed")
			c.awaitSession(t, 7)
			require.True(t, c.EndSession(t.Context()), "on the next one")
			closed(t, c)
		})
	}
}

// Nothing is answered any more once the end of a session is confirmed, whenever that is noticed.
func TestRequestThatCrossesTheEndOfTheSessionClosesTheConnection(t *testing.T) {
	for name, write := range map[string]func(s *shim, wire *crossing, frame []byte){
		"before it is written": func(s *shim, wire *crossing, frame []byte) {
			wire.confirm()
			_, _ = s.Write(frame)
		},
		"while it is written": func(s *shim, wire *crossing, frame []byte) {
			wire.during = wire.confirm
			_, _ = s.Write(frame)
		},
		"after it was written": func(s *shim, wire *crossing, frame []byte) {
			_, _ = s.Write(frame)
			wire.confirm()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				owner := &Conn{log: zap.NewNop(), hosts: newHosts([]string{"a:1"}, time.Second, nil, nil)}
				wire := &crossing{Conn: near}
				s := newShim(wire, owner, "a:1", time.Time{})
				defer s.Close()
				s.asked = true // shaken hands
				wire.confirm = func() { require.True(t, s.farewell.answered(replyHeader{xid: farewellXid})) }
				write(s, wire, header(1, opExists))
				go func() { _, _ = s.lastWords(make([]byte, 100)) }() // as who reads goes on
				synctest.Wait()
				select {
				case <-s.gone:
				default:
					t.Error("the connection stays")
				}
			})
		})
	}
}

// crossing takes everything, and does something before it says so.
type crossing struct {
	net.Conn
	during, confirm func()
}

func (c *crossing) Write(b []byte) (int, error) {
	if c.during != nil {
		c.during()
	}
	return len(b), nil
}
