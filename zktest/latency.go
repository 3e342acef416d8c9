package zktest

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/docent-zk/docent/zktest/internal/memnet"
)

// Latencies of a server with a seed.
const (
	leastLatency = 100 * time.Microsecond
	mostLatency  = 2 * time.Millisecond
)

// streams are deliveries in one direction of one client. No two streams deliver at the same instant, or else it would be up to chance
// which of two requests comes first: each has nanoseconds of its own within each microsecond, and those that programs and the
// server's clock use, the first, belong to none.
const streams = int64(time.Microsecond) - 1

// stream is the latencies of one direction of a client's connection.
type stream struct {
	random *rand.Rand
	slot   int64
}

// newStream is a function of its arguments. The direction is 0 or 1.
func newStream(seed int64, client *Client, conn, direction int) *stream {
	h := fnv.New64a()
	_, _ = h.Write([]byte(client.name))
	key := h.Sum64() ^ uint64(conn)<<1 ^ uint64(direction)
	return &stream{
		random: rand.New(rand.NewPCG(uint64(seed), key)),
		slot:   1 + (int64(client.number)*2+int64(direction))%streams,
	}
}

// arrival is when what is sent now is there.
func (s *stream) arrival(now time.Time) time.Time {
	t := now.Add(leastLatency + time.Duration(s.random.Int64N(int64(mostLatency-leastLatency))))
	unit := int64(time.Microsecond)
	return t.Add(time.Duration((s.slot - t.UnixNano()%unit + unit) % unit))
}

// schedules are the latencies of a new connection, and how long it takes to be made.
func (c *Client) schedules(conn int) (dial time.Duration, toServer, toClient memnet.Schedule) {
	if c.srv.cfg.seed == nil {
		return 0, nil, nil
	}
	up, down := newStream(*c.srv.cfg.seed, c, conn, 0), newStream(*c.srv.cfg.seed, c, conn, 1)
	now := time.Now()
	return down.arrival(now).Sub(now), up.arrival, down.arrival
}
