package zktest_test

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// most is how much a server may allocate for a hostile client.
const most = 32 << 20

// hostileFrames are requests behind a handshake that claim to be more than they are.
var hostileFrames = map[string]struct {
	frame []byte
	ends  bool // the connection; otherwise the request gets an error
}{
	"the largest length":              {[]byte{0x7f, 0xff, 0xff, 0xff}, true},
	"a negative length":               {[]byte{0xff, 0xff, 0xff, 0xff}, true},
	"a part of a header":              {rawzk.Frame([]byte{0, 0, 0, 1, 0}), true},
	"a path of two gigabytes":         {hostileRequest(4, math.MaxInt32), false},
	"a path of a negative length":     {hostileRequest(4, math.MaxUint32-1), false},
	"two billion ACLs":                {hostileRequest(7, 1, '/', math.MaxInt32), false},
	"two billion watches":             {hostileRequest(101, 0, 0, math.MaxInt32), false},
	"two billion persistent watches":  {hostileRequest(105, 0, 0, 0, 0, 0, math.MaxInt32), false},
	"a transaction that does not end": {hostileRequest(14, 0, 0, 0), false},
	"a transaction of unknown parts":  {hostileRequest(14, 0x7fffffff, 0, 0), false},
	"credentials of two gigabytes":    {hostileRequest(100, 0, 1, 'd', math.MaxInt32), true},
	"data of a negative length":       {hostileRequest(5, 1, '/', math.MaxUint32-7), false},
}

// hostileRequest returns a request of an operation. A number below 256 behind a length of 1 is a byte of a text.
func hostileRequest(op uint32, fields ...uint32) []byte {
	body := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 9}, op)
	for i, f := range fields {
		if i > 0 && fields[i-1] == 1 && f < 256 {
			body = append(body, byte(f))
			continue
		}
		body = binary.BigEndian.AppendUint32(body, f)
	}
	return rawzk.Frame(body)
}

// allocated returns how many bytes fn has the process allocate.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHostileRequestsAreRefused(t *testing.T) {
	for name, hostile := range hostileFrames {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t)
			nc, err := net.Dial("tcp", srv.Addr())
			require.NoError(t, err)
			greet(t, rawOver(t, nc), newSession)
			size := allocated(func() {
				_, err = nc.Write(hostile.frame)
				require.NoError(t, err)
				require.NoError(t, nc.SetReadDeadline(time.Now().Add(enough)))
				answer := make([]byte, 20) // length, number, zxid, error
				_, err = io.ReadFull(nc, answer)
				if hostile.ends {
					require.ErrorIs(t, err, io.EOF)
					return
				}
				require.NoError(t, err)
				require.Equal(t, zktest.MarshallingError, zktest.Code(int32(binary.BigEndian.Uint32(answer[16:]))))
			})
			require.Less(t, size, uint64(most))
			servesAnother(t, srv)
		})
	}
}

// Clients connect, and say nothing. Nothing is left of them when they have gone.
func TestFloodOfConnections(t *testing.T) {
	srv := zktest.Start(t)
	var all []net.Conn
	size := allocated(func() {
		for range 500 {
			nc, err := net.Dial("tcp", srv.Addr())
			require.NoError(t, err)
			all = append(all, nc)
		}
		require.NoError(t, servesAnother(t, srv).Close())
	})
	require.Less(t, size, uint64(most))
	var errs []error
	for _, nc := range all {
		errs = append(errs, nc.Close())
	}
	require.NoError(t, errors.Join(errs...))
	eventually(t, "connections are served", func() bool { return zktest.Served(srv) == 0 })
}
