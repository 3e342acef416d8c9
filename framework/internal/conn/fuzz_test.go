package conn

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzReplies parses arbitrary replies.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{}, int32(0))
	nothing := []byte{0xff, 0xff, 0xff, 0xff}
	f.Add(slices.Concat([]byte{0, 0, 0, opMulti, 0}, nothing, nothing, []byte{1}, nothing), int32(0))
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

// canned is a connection on which all input has already arrived.
type canned struct {
	net.Conn
	in *bytes.Reader
}

func (c *canned) Read(b []byte) (int, error)      { return c.in.Read(b) }
func (c *canned) Write(b []byte) (int, error)     { return len(b), nil }
func (c *canned) Close() error                    { return nil }
func (c *canned) SetReadDeadline(time.Time) error { return nil }
func (c *canned) SetDeadline(time.Time) error     { return nil }

// FuzzConnection reads arbitrary input of a connection.
func FuzzConnection(f *testing.F) {
	granted := append([]byte{
		0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 117, 48, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0, 16,
	}, make([]byte, 16)...)
	f.Add(granted, []byte{}, false)
	f.Add(granted, header(firstXid, 0, 1, 0), true)
	f.Add(granted, header(endXid, 0, 1, 0), true)
	f.Add(granted, header(eventXid, 0, 1, 0, 2, 3, 0), false)
	f.Add(granted, append([]byte{0x0f, 0xff, 0xff, 0xff}, header(firstXid, 0, 1, 0)[lengthSize:]...), false)
	f.Fuzz(func(t *testing.T, hello, rest []byte, ending bool) {
		c := unstarted("a:1", "b:1")
		defer c.Close()
		socket := &canned{in: bytes.NewReader(append(bytes.Clone(hello), rest...))}
		info, err := requestSession(socket, time.Now().Add(time.Second), connectRequest{timeout: time.Second})
		if err != nil || info.ID == 0 || info.Timeout <= 0 {
			return
		}
		c.established(info, Now())
		l := newLink(socket, c, "a:1", 0)
		c.running.Go(l.write)
		answered := 0
		l.send(authenticate(Credential{"digest", []byte("a:b")}), func(Reply) { answered++ })
		l.admit(nil)
		l.ask(Get("/x", true), func(r Reply) { _, _, _ = r.Data(); answered++ })
		l.ask(Children("/x", true), func(r Reply) { _, _, _ = r.Children(); answered++ })
		l.mu.Lock()
		l.ending = ending
		l.mu.Unlock()
		err = l.read()
		require.Equal(t, err == nil, ending && isClosed(l.endConfirmed))
		require.NoError(t, l.Close())
		require.Equal(t, 3, answered, "want one reply to each request")
	})
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A server may announce more than it sends.
func TestMemoryOfAReplyIsForArrivedBytesOnly(t *testing.T) {
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		if f, ok := p.next(); ok {
			frame := header(f.xid, 0, 1, 0)
			binary.BigEndian.PutUint32(frame, maxReply)
			_, _ = p.Write(frame)
			p.Close()
		}
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	r := await(t, asked(c, Get("/a", false)))
	require.Error(t, r.Err())
	require.Less(t, cap(r.body), 1<<20)
}
