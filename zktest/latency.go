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

// Kinds of events that the network causes for a client. No two kinds and no two clients share an
// instant, because chance would decide which event comes first. Each has a nanosecond of its own
// within each microsecond. The first nanosecond is for programs, and the last for the server's
// clock. That is enough for some 300 clients; further clients share.
const (
	requestArrives = iota
	answerArrives
	deadlinePasses
	perClient
)

// slots is the number of nanoseconds in a microsecond that are for clients.
const slots = int64(time.Microsecond) - 2

// slot returns the first instant from t on that belongs to the client for events of kind what.
func (c *Client) slot(t time.Time, what int) time.Time {
	return nextSlot(t, 1+(int64(c.number)*perClient+int64(what))%slots)
}

// nextSlot returns the first instant from t on that is own nanoseconds after a whole microsecond.
func nextSlot(t time.Time, own int64) time.Time {
	unit := int64(time.Microsecond)
	return t.Add(time.Duration((own - t.UnixNano()%unit + unit) % unit))
}

// serverSlot returns the first instant from t on that belongs to the server's clock.
func serverSlot(t time.Time) time.Time { return nextSlot(t, slots+1) }

// awaitSlot waits for an instant that belongs to the client and to the connection of that number.
// It is called after an event for which other connections may have waited too.
func (c *Client) awaitSlot(what, number int) {
	if c.srv.cfg.seed != nil {
		now := time.Now()
		time.Sleep(c.slot(now.Add(time.Duration(number%1000)*time.Microsecond), what).Sub(now))
	}
}

// latency returns the delays of one direction of one connection. They depend only on the seed, the
// client's name, the number of the connection, the direction and the number of the delivery.
func (c *Client) latency(conn, direction int) memnet.Schedule {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.name))
	random := rand.New(rand.NewPCG(uint64(*c.srv.cfg.seed), h.Sum64()^uint64(conn)<<1^uint64(direction)))
	var last time.Time
	return func(now time.Time) time.Time {
		t := now.Add(leastLatency + time.Duration(random.Int64N(int64(mostLatency-leastLatency))))
		if !t.After(last) { // no delivery overtakes another or comes at the same instant
			t = last.Add(1)
		}
		last = c.slot(t, direction)
		return last
	}
}

// deadlines moves a deadline of the client's reads and writes to an instant of the client. The Go
// driver pings at exactly the instants at which its reads time out. This way the ping comes first.
func (c *Client) deadlines(t time.Time) time.Time { return c.slot(t, deadlinePasses) }

// pipe makes a connection in memory. It also returns how long the client must wait for it.
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
