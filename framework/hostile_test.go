package framework_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const hostileTimeout = 4 * time.Second

// hostileServer is a server that does not keep to the protocol on one connection.
type hostileServer struct {
	net.Conn
}

// reply sends the header of a reply, of which the length says that it has so many bytes more.
func (s *hostileServer) reply(xid int32, zxid int64, code int32, announced int, body ...byte) bool {
	frame := binary.BigEndian.AppendUint32(nil, uint32(16+announced))
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint64(frame, uint64(zxid))
	frame = binary.BigEndian.AppendUint32(frame, uint32(code))
	return s.send(append(frame, body...)...)
}

func (s *hostileServer) send(b ...byte) bool {
	_, err := s.Write(b)
	return err == nil
}

// grant reads the connect request and grants session 7.
func (s *hostileServer) grant(timeout time.Duration) {
	readFrame(s)
	s.send(0, 0, 0, 36)
	granted := make([]byte, 36)
	binary.BigEndian.PutUint32(granted[4:], uint32(timeout.Milliseconds()))
	binary.BigEndian.PutUint64(granted[8:], 7)
	binary.BigEndian.PutUint32(granted[16:], 16)
	s.send(granted...)
}

// await grants a session and returns the number of the first read of the client. It answers syncs.
func (s *hostileServer) await() (xid int32) {
	s.grant(hostileTimeout)
	for request, ok := readFrame(s); ok; request, ok = readFrame(s) {
		xid = int32(binary.BigEndian.Uint32(request))
		if fault.Op(int32(binary.BigEndian.Uint32(request[4:]))) == fault.OpGetData {
			return xid
		}
		s.reply(xid, 1, 0, 0)
	}
	return 0
}

// silent reads until the client closes the connection.
func (s *hostileServer) silent() {
	for _, ok := readFrame(s); ok; _, ok = readFrame(s) {
	}
}

// discard reads beside what the server does, so that the client never waits for a full socket.
func (s *hostileServer) discard(do func()) {
	var reading sync.WaitGroup
	reading.Go(s.silent)
	do()
	s.Close()
	reading.Wait()
}

// greets returns what answers the connect request with some bytes.
func greets(b ...byte) func(*hostileServer) {
	return func(s *hostileServer) {
		readFrame(s)
		s.send(b...)
		s.silent()
	}
}

// sends returns what answers the first read of the client with some bytes.
func sends(b ...byte) func(*hostileServer) {
	return func(s *hostileServer) {
		s.await()
		s.send(b...)
		s.silent()
	}
}

// replies returns what answers the first read with a header and a body.
func replies(zxid int64, code int32, announced int, body ...byte) func(*hostileServer) {
	return func(s *hostileServer) {
		s.reply(s.await(), zxid, code, announced, body...)
		s.silent()
	}
}

// notifies returns what sends a reply with another number than that of the first read.
func notifies(xid int32, announced int, body ...byte) func(*hostileServer) {
	return func(s *hostileServer) {
		s.await()
		s.reply(xid, 1, 0, announced, body...)
		s.silent()
	}
}

// list is a length with as many bytes as are given.
func list(length int32, rest ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), rest...)
}

// hostileServers are servers of one connection each, by what they do. Each has what the error or the log
// of the client must say; without it the client only has to go on.
var hostileServers = map[string]struct {
	serve func(s *hostileServer)
	want  string
}{
	"nothing at all": {(*hostileServer).silent, ""},
	"closes at once": {func(s *hostileServer) {}, ""},
	"another protocol": {func(s *hostileServer) {
		readFrame(s)
		s.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")...)
		s.silent()
	}, "not a ZooKeeper server"},
	"empty greeting":    {greets(0, 0, 0, 0), "not a ZooKeeper server"},
	"negative greeting": {greets(0xff, 0xff, 0xff, 0xff), "not a ZooKeeper server"},
	"huge greeting":     {greets(0x7f, 0xff, 0xff, 0xff), "not a ZooKeeper server"},
	"half a greeting":   {greets(0, 0, 0, 36, 1, 2), ""},
	"half a greeting, ends": {func(s *hostileServer) {
		readFrame(s)
		s.send(0, 0, 0, 36, 1, 2)
	}, "short reply"},
	"huge password": {
		greets(0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 117, 48, 0, 0, 0, 0, 0, 0, 0, 7, 0x7f, 0xff, 0xff, 0xff),
		"password of 2147483647 bytes",
	},
	"negative timeout": {func(s *hostileServer) {
		s.grant(-time.Second)
		s.silent()
	}, ""},
	"tiny timeout": {func(s *hostileServer) {
		s.grant(time.Millisecond)
		s.silent()
	}, ""},
	"endless timeout": {func(s *hostileServer) {
		s.grant(math.MaxInt32 * time.Millisecond)
		s.Close()
	}, ""},

	"reply without a header": {sends(0, 0, 0, 15), "not a ZooKeeper server"},
	"reply of length 0":      {sends(0, 0, 0, 0), "not a ZooKeeper server"},
	"reply of length -1":     {sends(0xff, 0xff, 0xff, 0xff), "not a ZooKeeper server"},
	"reply of 2 GB":          {sends(0x7f, 0xff, 0xff, 0xff), "not a ZooKeeper server"},
	"half a header":          {sends(0, 0, 0, 16, 0, 0), ""},
	"half a header, ends": {func(s *hostileServer) {
		s.await()
		s.send(0, 0, 0, 16, 0, 0)
	}, "disconnected"},
	"half a body":               {replies(1, 0, 100, 1, 2, 3), ""},
	"half a body, ends":         {func(s *hostileServer) { s.reply(s.await(), 1, 0, 100, 1, 2, 3) }, "disconnected"},
	"256 MB that never come":    {replies(1, 0, 1<<28-16, 1, 2, 3), ""},
	"empty reply":               {replies(1, 0, 0), "malformed reply"},
	"data without a stat":       {replies(1, 0, 5, list(1, 'x')...), "malformed reply"},
	"data of 2 GB":              {replies(1, 0, 4, list(math.MaxInt32)...), "malformed reply"},
	"data of length -2":         {replies(1, 0, 4, list(-2)...), "malformed reply"},
	"unknown error":             {replies(1, -99, 0), "server error -99: unknown"},
	"error that is no error":    {replies(1, 99, 0), "server error 99: unknown"},
	"refused session":           {replies(1, -112, 0), ""},
	"end that was not asked":    {notifies(math.MaxInt32, 0), "a reply without a request"},
	"another request's reply":   {notifies(1000, 3, 1, 2, 3), "a reply without a request"},
	"number of a ping":          {notifies(-2, 0), "a reply without a request"},
	"event of 5 MB":             {notifies(-1, 5<<20), "not a ZooKeeper server"},
	"empty event":               {notifies(-1, 0), "malformed event"},
	"event with a huge path":    {notifies(-1, 12, 0, 0, 0, 3, 0, 0, 0, 3, 0x7f, 0xff, 0xff, 0xff), "malformed event"},
	"event of an unknown type":  {notifies(-1, 14, 0, 0, 0, 99, 0, 0, 0, 99, 0, 0, 0, 2, '/', 'a'), ""},
	"transaction of the future": {replies(math.MaxInt64, 0, 0), "malformed reply"},

	"flood of replies that were not asked for": {func(s *hostileServer) {
		s.await()
		s.discard(func() {
			for s.reply(77, 1, 0, 1000, make([]byte, 1000)...) {
				time.Sleep(time.Millisecond)
			}
		})
	}, "a reply without a request"},
	"endless reply that was not asked for": {func(s *hostileServer) {
		s.await()
		s.discard(func() {
			for s.reply(77, 1, 0, 1<<28-16) {
				for range 1 << 28 / (1 << 14) {
					if !s.send(make([]byte, 1<<14)...) {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}, "a reply without a request"},
	"flood of events": {func(s *hostileServer) {
		s.await()
		path := strings.Repeat("/x", 500)
		s.discard(func() {
			event := append(append(make([]byte, 8), list(int32(len(path)))...), path...)
			for s.reply(-1, 1, 0, len(event), event...) {
				time.Sleep(time.Millisecond)
			}
		})
	}, ""},
	"bytes one at a time": {func(s *hostileServer) {
		xid := s.await()
		s.discard(func() {
			s.reply(xid, 1, 0, 1<<20)
			for s.send(0) {
				time.Sleep(hostileTimeout / 8)
			}
		})
	}, ""},
}

// maxHostileMemory bounds what a client allocates while a server announces more than it sends.
const maxHostileMemory = 48 << 20

// The first connection is to a server that does not keep to the protocol. The client returns a clear
// error, or reads the node from the next server. It neither hangs nor panics, and takes little memory.
func TestHostileServerDoesNotHoldTheClient(t *testing.T) {
	for name, hostile := range hostileServers {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				require.NoError(t, srv.Create("/a", []byte("data")))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				core, logs := observer.New(zap.DebugLevel)
				var serving sync.WaitGroup
				var dials atomic.Int32
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials.Add(1) > 1 {
						return srv.Client("c").DialContext(ctx, network, srv.MemAddr())
					}
					own, theirs := net.Pipe()
					serving.Go(func() {
						defer theirs.Close()
						hostile.serve(&hostileServer{Conn: theirs})
					})
					return own, nil
				}
				client, err := framework.New("a:1,b:1", framework.WithDialer(dial), framework.WithLogger(zap.New(core)),
					framework.WithSessionTimeout(hostileTimeout),
					framework.WithRetry(retry.Forever(100*time.Millisecond)))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 10*hostileTimeout)
				defer cancel()
				data, _, err := client.Get(ctx, "/a")
				if err != nil {
					require.NoError(t, ctx.Err(), "the client hangs: %v", err)
				} else {
					require.Equal(t, "data", string(data))
				}
				require.NoError(t, client.Close())
				serving.Wait()
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxHostileMemory))
				require.Contains(t, texts(err, logs), hostile.want)
			})
		})
	}
}

// A server answers a write with the result of a delete, and so without a Stat.
func TestResultsOfAnotherOperationAreAnError(t *testing.T) {
	srv := startOldServer(t)
	srv.multi = []byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	client := testzk.Connected(t, srv.listener.Addr().String())
	_, err := client.Multi(testzk.Context(t), framework.SetOp("/a", nil, -1))
	require.ErrorContains(t, err, "malformed reply")
	require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	_, err = client.Multi(testzk.Context(t), framework.DeleteOp("/a", -1))
	require.NoError(t, err)
}

// texts returns the text of an error and of all that was logged.
func texts(err error, logs *observer.ObservedLogs) string {
	var all strings.Builder
	fmt.Fprintln(&all, err)
	for _, entry := range logs.All() {
		fmt.Fprintln(&all, entry.Message, entry.ContextMap())
	}
	return all.String()
}
