package zktest

import (
	"hash/fnv"
	"math/rand/v2"
	"net"
	"time"

	"github.com/docent-zk/docent/zktest/internal/memnet"
)

// Latencies of a server with a seed.
const (
	leastLatency = 100 * time.Microsecond
	mostLatency  = 2 * time.Millisecond
)

// What happens to a client because of its network. No two of these, and no two clients, have the same instant, or else it would be up to
// chance what comes first: each has a nanosecond of its own within each microsecond. The first is for programs, and the last for the
// server's clock. That is enough for some 300 clients; those after them share.
const (
	requestArrives = iota
	answerArrives
	deadlinePasses
	perClient
)

// slots are the nanoseconds that there are for clients.
const slots = int64(time.Microsecond) - 2

// slot is the first instant from t on that belongs to the client for this.
func (c *Client) slot(t time.Time, what int) time.Time {
	return nextSlot(t, 1+(int64(c.number)*perClient+int64(what))%slots)
}

// nextSlot is the first instant from t on that is so many nanoseconds after a whole microsecond.
func nextSlot(t time.Time, own int64) time.Time {
	unit := int64(time.Microsecond)
	return t.Add(time.Duration((own - t.UnixNano()%unit + unit) % unit))
}

// serverSlot is the first instant from t on that belongs to the server's clock.
func serverSlot(t time.Time) time.Time { return nextSlot(t, slots+1) }

// settle waits for an instant of the client's own, and of the connection of that number, after something that may have let go others too.
func (c *Client) settle(what, number int) {
	if c.srv.cfg.seed != nil {
		now := time.Now()
		time.Sleep(c.slot(now.Add(time.Duration(number%1000)*time.Microsecond), what).Sub(now))
	}
}

// latency is that of one direction of one connection: a function of the seed, the client's name, the number of its connection, the direction
// and the number of the delivery.
func (c *Client) latency(conn, direction int) memnet.Schedule {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.name))
	random := rand.New(rand.NewPCG(uint64(*c.srv.cfg.seed), h.Sum64()^uint64(conn)<<1^uint64(direction)))
	var last time.Time
	return func(now time.Time) time.Time {
		t := now.Add(leastLatency + time.Duration(random.Int64N(int64(mostLatency-leastLatency))))
		if !t.After(last) { // nothing overtakes, and nothing comes at the same instant either
			t = last.Add(1)
		}
		last = c.slot(t, direction)
		return last
	}
}

// deadlines are those of the client's reads and writes. The Go driver pings at the very instants at which its reads time out: the ping
// comes first.
func (c *Client) deadlines(t time.Time) time.Time { return c.slot(t, deadlinePasses) }

// pipe makes a connection in memory, and says how long that takes.
func (c *Client) pipe(number int, from, to *net.TCPAddr) (client, server *memnet.Conn, takes time.Duration) {
	if c.srv.cfg.seed == nil {
		client, server = memnet.Pipe(from, to, nil, nil)
		return client, server, 0
	}
	up, down := c.latency(number, requestArrives), c.latency(number, answerArrives)
	now := time.Now()
	takes = down(now).Sub(now)
	client, server = memnet.Pipe(from, to, up, down)
	client.ScheduleDeadlines(c.deadlines)
	return client, server, takes
}
