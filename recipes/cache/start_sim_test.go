package cache_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	startSeeds = 60
	startLag   = time.Second
)

// Caches are made while the client's connection and session end again and again, so many attempts to set a
// watch fail, and their answers come late. Each cache is current soon after the last fault.
func TestSimulatedStart(t *testing.T) { sim.Run(t, startSeeds, simulateStart) }

func simulateStart(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	servers := []string{srv.MemAddr()}
	for range random.IntN(3) {
		servers = append(servers, srv.Follower(time.Duration(1+random.Int64N(int64(startLag)))).MemAddr())
	}
	client := simClient(t, srv, random, "c0", strings.Join(servers, ","),
		framework.WithRetry(retry.Times(1+random.IntN(6), time.Duration(random.Int64N(int64(simTimeout/3))))),
		framework.WithLossPolicy(framework.LossPolicy(random.IntN(2))))
	create(t, client, "/a/b")
	over, calm := make(chan struct{}), make(chan struct{})
	own := rand.New(rand.NewPCG(random.Uint64(), 1))
	go func() {
		defer close(calm)
		endConnections(srv.Client("c0"), own, simTimeout/time.Duration(4<<own.IntN(4)), over)
	}()
	all := startLate(t, client, random)
	close(over)
	<-calm
	for _, c := range all {
		becomesReady(t, c)
		require.Equal(t, []string{"", "/b"}, paths(c, "/a"))
	}
}

// endConnections ends connections and sessions of a client, and delays what it hears, until over is closed.
func endConnections(c *zktest.Client, random *rand.Rand, pause time.Duration, over <-chan struct{}) {
	for {
		select {
		case <-over:
			c.Heal()
			return
		case <-time.After(time.Duration(random.Int64N(int64(pause)))):
			endConnection(c, random)
		}
	}
}

// endConnection ends a client's connection or its session, or delays what the client hears.
func endConnection(c *zktest.Client, random *rand.Rand) {
	later := time.Duration(random.Int64N(int64(simTimeout / 2)))
	switch random.IntN(6) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		for _, s := range c.Sessions() {
			_ = s.Expire()
		}
	case 3:
		for _, s := range c.Sessions() {
			_ = s.Move()
		}
	case 4:
		c.CutReplies()
		time.AfterFunc(later, c.Heal)
	case 5:
		c.Cut()
		time.AfterFunc(later, c.Heal)
	}
}
