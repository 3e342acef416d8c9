package conn

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// FuzzReplies parses arbitrary replies. What a parser returns is what its caller relies on, and its size is
// bounded by the bytes that arrived.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{}, int32(0))
	nothing := []byte{0xff, 0xff, 0xff, 0xff}
	end := slices.Concat(nothing, []byte{1}, nothing)
	stat := make([]byte, 68)
	f.Add(slices.Concat([]byte{0, 0, 0, opMulti, 0}, nothing, end), int32(0))
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 1, 'a', 0, 0, 0, 1, 'b'}, int32(0))
	f.Add(bytes.Repeat([]byte{0xff}, 100), int32(-101))
	f.Add(slices.Concat([]byte{0, 0, 0, 1, 0, 0, 0, 31, 0, 0, 0, 1, 's', 0, 0, 0, 1, 'i'}, stat), int32(0))
	f.Add(slices.Concat([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 5, 0, 0, 0, 0, 0}, stat,
		[]byte{0, 0, 0, 2, 0, 0, 0, 0, 0}, end), int32(0))
	f.Add(slices.Concat([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'x'}, stat,
		[]byte{0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'c'}, end), int32(0))
	f.Add(slices.Concat(nothing, []byte{0}, nothing, []byte{0xff, 0xff, 0xff, 0x9b}, end), int32(0))
	writes := []any{&zk.CreateRequest{}, &zk.SetDataRequest{}, &zk.DeleteRequest{}}
	reads := []Read{{Path: "/a"}, {Path: "/b", Children: true}}
	f.Fuzz(func(t *testing.T, body []byte, c int32) {
		r := Reply{body: body, err: code(c)}
		stat, err := r.Stat()
		require.Equal(t, stat == nil, err != nil)
		if data, _, err := r.Data(); err == nil {
			require.LessOrEqual(t, len(data), len(body))
		}
		if all, _, err := r.Children(); err == nil {
			require.LessOrEqual(t, 4*len(all), len(body), "children without a length each")
		}
		if all, err := r.Paths(); err == nil {
			require.LessOrEqual(t, 4*len(all), len(body), "paths without a length each")
		}
		if all, _, err := r.ACL(); err == nil {
			require.LessOrEqual(t, 12*len(all), len(body), "entries without their lengths")
		}
		_, _ = r.Path()
		_, _ = r.Count()
		checkResults(t, r, writes)
		checkReadings(t, r, reads)
		if info, err := parseConnectReply(append(make([]byte, connectReplyMin), body...)); err == nil {
			require.LessOrEqual(t, len(info.Password), len(body))
		}
	})
}

func checkResults(t *testing.T, r Reply, writes []any) {
	t.Helper()
	results, err := r.Results(writes)
	if results == nil {
		require.Error(t, err)
		return
	}
	require.Len(t, results, len(writes))
	if err == nil {
		require.NotNil(t, results[1].Stat)
	}
}

func checkReadings(t *testing.T, r Reply, reads []Read) {
	t.Helper()
	readings, err := r.Readings(reads)
	if err != nil {
		require.Nil(t, readings)
		return
	}
	require.Len(t, readings, len(reads))
	require.Equal(t, readings[0].Err == nil, readings[0].Stat != nil)
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
