package acceptance_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Something that says nothing, or four bytes, is where the server should be for up to a minute, so that the client has come to
// pause between its attempts. At whatever moment the server comes back, 25 for each illness and session timeout, the client has
// a working session within 5 s.
func TestP09_SessionIsBackSoonAtWhateverMomentTheServerRecovers(t *testing.T) {
	onlyInProcess(t, "a hundred outages of half a minute each take virtual time")
	for name, illness := range p09Illnesses {
		for _, timeout := range p09Timeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				sim.Run(t, 25, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
					p09Recovers(t, srv, random, illness, timeout)
				})
			})
		}
	}
}

func p09Recovers(t *testing.T, srv *zktest.Server, random *rand.Rand, illness []byte, timeout time.Duration) {
	well := srv.Client("a").DialContext
	var sick atomic.Bool
	client := testzk.Client(t, srv.MemAddr(), framework.WithSessionTimeout(timeout),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N),
		framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if sick.Load() {
				return p09Void(illness), nil
			}
			return well(ctx, network, address)
		}))
	require.NoError(t, client.WaitConnected(context.Background()))
	sick.Store(true)
	srv.Client("a").Drop()
	time.Sleep(time.Second + time.Duration(random.Int64N(int64(time.Minute))))
	sick.Store(false)
	p09WorksWithin(t, client, p09Soon)
}

// p09Void is a connection to nobody who has said something once.
func p09Void(said []byte) net.Conn {
	conn, other := net.Pipe()
	go func() { _, _ = other.Write(said) }() // both end when the client closes the connection
	go func() { _, _ = io.Copy(io.Discard, other) }()
	return conn
}
