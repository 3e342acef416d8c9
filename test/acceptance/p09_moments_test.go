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

// A faulty server, which sends nothing or four bytes, replaces the server for up to a minute, so
// that the client pauses between its attempts. The server returns at 25 moments for each fault and
// session timeout. Each time the client has a working session within 5 s.
func TestP09_SessionIsBackSoonAtWhateverMomentTheServerRecovers(t *testing.T) {
	onlyInProcess(t, "a hundred outages of half a minute each take virtual time")
	for name, fault := range p09Faults {
		for _, timeout := range p09Timeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				sim.Run(t, 25, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
					p09Recovers(t, srv, random, fault, timeout)
				})
			})
		}
	}
}

func p09Recovers(t *testing.T, srv *zktest.Server, random *rand.Rand, fault []byte, timeout time.Duration) {
	well := srv.Client("a").DialContext
	var faulty atomic.Bool
	client := testzk.Client(t, srv.MemAddr(), framework.WithSessionTimeout(timeout),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N),
		framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if faulty.Load() {
				return p09Silent(fault), nil
			}
			return well(ctx, network, address)
		}))
	require.NoError(t, client.WaitConnected(context.Background()))
	faulty.Store(true)
	srv.Client("a").Drop()
	time.Sleep(time.Second + time.Duration(random.Int64N(int64(time.Minute))))
	faulty.Store(false)
	p09WorksWithin(t, client, p09Soon)
}

// p09Silent returns a connection from which said can be read and nothing else.
func p09Silent(said []byte) net.Conn {
	conn, other := net.Pipe()
	go func() { _, _ = other.Write(said) }() // both end when the client closes the connection
	go func() { _, _ = io.Copy(io.Discard, other) }()
	return conn
}
