package wire

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	// stable is how long a connection must have lasted for the next attempts to count from nothing again. Without it a
	// server that accepts and hangs up would be dialled without any pause.
	stable = time.Second
)

// hosts is the driver's host provider. It keeps names, not addresses: each dial resolves its name anew.
//
// The driver asks it for the next server, and where it answers "start over" the driver fails the requests that it has not
// sent, sleeps for a second and looks whether it was closed. So it answers that only when the connection is over; the
// pauses between rounds of attempts are made in the dialer, where they can be cut short.
type hosts struct {
	servers  []string
	maxPause time.Duration
	over     func() bool

	mu       sync.Mutex
	next     int
	attempts int       // since the last stable connection
	since    time.Time // when the present connection was made, if there is one
}

func newHosts(servers []string, maxPause time.Duration, over func() bool) *hosts {
	shuffled := append([]string(nil), servers...)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return &hosts{servers: shuffled, maxPause: max(maxPause, firstPause), over: over}
}

// Init is called by the driver with the servers given to it, which are the ones we already have.
func (h *hosts) Init([]string) error { return nil }

// Len is the number of servers.
func (h *hosts) Len() int { return len(h.servers) }

// Next is the server to try next, and whether the driver shall look for a reason to stop.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.since.IsZero() && time.Since(h.since) >= stable {
		h.attempts = 0
	}
	h.since = time.Time{}
	server := h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	h.attempts++
	return server, h.over()
}

// Connected is called by the driver when it has a session.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = time.Now()
}

// pause is how long to wait before the attempt at hand: not at all within the first round over all servers, then twice as
// long each round, up to a bound, and each time a random part of that so that clients do not come back all at once.
func (h *hosts) pause() time.Duration {
	h.mu.Lock()
	round := (h.attempts - 1) / len(h.servers)
	h.mu.Unlock()
	if round <= 0 {
		return 0
	}
	bound := h.maxPause
	if shift := round - 1; shift < 16 {
		bound = min(bound, firstPause<<shift)
	}
	return bound/2 + rand.N(bound/2+1)
}
