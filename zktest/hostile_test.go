package zktest_test

import (
	"io"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// FuzzClient has a client send arbitrary bytes, after a handshake or instead of it. The server serves
// another client afterwards, and no goroutine is left for the first one.
func FuzzClient(f *testing.F) {
	requests := func(ops ...rawzk.Op) (stream []byte) {
		for i, o := range ops {
			stream = append(stream, rawzk.Frame(rawzk.Request(int32(i+1), o))...)
		}
		return stream
	}
	f.Add(false, rawzk.Frame(newSession.Encode()))
	f.Add(false, []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(false, []byte("mntr"))
	f.Add(false, []byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(true, []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(true, []byte{0, 0, 0, 0, 0, 0, 0, 1, 0})
	f.Add(true, requests(createOp("/a"), rawzk.SetData("/a", []byte("x"), 0), rawzk.GetChildren2("/", true)))
	f.Add(true, requests(rawzk.Multi(createOp("/b"), rawzk.Check("/b", 0), rawzk.Delete("/b", 0))))
	f.Add(true, requests(rawzk.CloseSession(), createOp("/b")))
	f.Add(true, requests(rawzk.MultiRead(rawzk.GetData("/", false), rawzk.GetChildren("/", false))))
	f.Add(true, requests(rawzk.SetWatches2(0, []string{"/"}, []string{"/x"}, nil, nil, []string{"/"}), createOp("/x")))
	f.Add(true, requests(rawzk.Auth("digest", []byte("u:p")), rawzk.AddWatch("/", 1), rawzk.CheckWatches("/", 3)))
	f.Add(true, requests(rawzk.CreateTTL("/t", nil, rawzk.Open(), 5, math.MaxInt64), rawzk.Sync(""), rawzk.Ping()))
	f.Add(true, requests(rawzk.CreateContainer("/c", nil, nil, 4), rawzk.GetEphemerals("/"), rawzk.WhoAmI()))
	f.Fuzz(func(t *testing.T, greeted bool, stream []byte) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			nc, err := srv.Client("hostile").DialContext(t.Context(), "tcp", srv.MemAddr())
			require.NoError(t, err)
			if greeted {
				greet(t, rawOver(t, nc), newSession)
			}
			var running sync.WaitGroup
			running.Go(func() { _, _ = io.Copy(io.Discard, nc) })
			running.Go(func() { _, _ = nc.Write(stream) })
			time.Sleep(2 * timeout)
			require.NoError(t, nc.Close())
			running.Wait()
			synctest.Wait()
			servesAnother(t, srv)
			require.Equal(t, 1, zktest.Served(srv))
		})
	})
}

// servesAnother requires that a server answers another client, and returns that client.
func servesAnother(t *testing.T, srv *zktest.Server) *raw {
	t.Helper()
	other := enterRaw(t, srv, "other")
	other.send(t, 7, rawzk.Exists("/", false))
	require.Zero(t, other.receive(t, 7).Err)
	return other
}
