package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// FuzzReplies parses what a server may answer.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{}, int32(0))
	f.Add([]byte{0, 0, 0, opMulti, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}, int32(0))
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 1, 'a', 0, 0, 0, 1, 'b'}, int32(0))
	f.Add(bytes.Repeat([]byte{0xff}, 100), int32(-101))
	f.Fuzz(func(t *testing.T, body []byte, c int32) {
		r := Reply{body: body, err: code(c)}
		stat, err := r.Stat()
		require.Equal(t, stat == nil, err != nil)
		_, _, _ = r.Data()
		if all, _, err := r.Children(); err == nil {
			require.LessOrEqual(t, 4*len(all), len(body), "children without a length each")
		}
		if all, err := r.Results(); err == nil {
			require.LessOrEqual(t, 9*len(all), len(body), "results without a header each")
		}
	})
}

// canned is a connection on which everything has come already.
type canned struct {
	net.Conn
	in *bytes.Reader
}

func (c *canned) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *canned) Write(b []byte) (int, error)      { return len(b), nil }
func (c *canned) Close() error                     { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

// FuzzConnection reads what a server may say on a connection, as the driver does: a length, then so much.
func FuzzConnection(f *testing.F) {
	welcome := append([]byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 117, 48, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0, 16}, make([]byte, 16)...)
	f.Add(welcome, []byte{}, false)
	f.Add(welcome, header(firstXid, 0, 1, 0), true)
	f.Add(welcome, header(farewellXid, 0, 1, 0), true)
	f.Add(welcome, header(1, 0, 1, 0, 0x01020304), false)
	f.Add(welcome, append([]byte{0x0f, 0xff, 0xff, 0xff}, header(firstXid, 0, 1, 0)[lengthSize:]...), false)
	f.Fuzz(func(t *testing.T, hello, rest []byte, farewell bool) {
		c := &Conn{
			cfg: Config{SessionTimeout: time.Second, ConnectTimeout: time.Second, OnCredential: func(bool) {}},
			log: zap.NewNop(), lastErr: map[string]error{}, hosts: newHosts([]string{"a:1", "b:1"}, time.Second, never, nil),
		}
		c.ctx, c.cancel = context.WithCancel(t.Context())
		defer c.cancel()
		s := newShim(&canned{in: bytes.NewReader(append(bytes.Clone(hello), rest...))}, c, "a:1", time.Now().Add(time.Second))
		_, _ = s.Write(append(header(0, 0, 0, 30_000, 0, 0, 16)[:lengthSize+28], make([]byte, 16)...))
		read := func(least, most int) bool {
			length := make([]byte, lengthSize)
			if _, err := io.ReadFull(s, length); err != nil {
				return false
			}
			n := int(binary.BigEndian.Uint32(length))
			require.GreaterOrEqual(t, n, least)
			require.LessOrEqual(t, n, most)
			_, err := io.ReadFull(s, make([]byte, n))
			return err == nil
		}
		if read(0, connectReplyMax) {
			s.admit(nil)
			s.ask(Get("/x", true), func(r Reply) { _, _, _ = r.Data() })
			s.ask(Children("/x", true), func(r Reply) { _, _, _ = r.Children() })
			_, _ = s.Write(header(1, opAuth))
			s.farewell.begun.Store(farewell)
			for !s.farewell.over() && read(replyHeaderSize, maxDriverReply+replyHeaderSize) {
			}
		}
		require.NoError(t, s.Close())
		c.writing.Wait()
	})
}

// A length may be a lie.
func TestReplyTakesRoomForWhatHasCome(t *testing.T) {
	s := serve(t, func(p *peer) {
		p.welcome(7, long)
		if f, ok := p.next(); ok {
			frame := header(f.xid, 0, 1, 0)
			binary.BigEndian.PutUint32(frame, maxReply)
			_, _ = p.Write(frame)
			p.Close()
		}
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	c.Admit()
	r := await(t, asked(c, Get("/a", false)))
	require.Error(t, r.Err())
	require.Less(t, cap(r.body), 1<<20)
}
