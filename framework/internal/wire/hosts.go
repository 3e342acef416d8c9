package wire

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// longestPause bounds the pauses between attempts, firstBound those of the first round that has them.
	firstBound   = time.Second
	longestPause = 2 * time.Second
	// stable is how long a connection must have lasted for the next attempts to count from nothing again. Without it a
	// server that accepts and hangs up would be dialled without any pause.
	stable = time.Second
)

// hosts is the driver's host provider. It keeps names: each dial resolves its name anew, and takes an address of it that was not tried
// lately, for one name may stand for several servers.
//
// The driver asks it for the next server, and where it answers "start over" the driver fails the requests that it has not
// sent, sleeps for a second and looks whether it was closed. So it answers that only when the connection is over; the
// pauses between rounds of attempts are made in the dialer, where they can be cut short.
type hosts struct {
	maxPause time.Duration
	over     func() bool
	random   func(n int64) int64

	mu       sync.Mutex
	servers  []string
	known    map[string]addresses // of each server that has a name and was resolved
	next     int
	attempts int       // since the last stable connection
	since    time.Time // when the present connection was made, if there is one
}

func newHosts(servers []string, maxPause time.Duration, over func() bool, random func(int64) int64) *hosts {
	if random == nil {
		random = rand.Int64N
	}
	return &hosts{servers: Shuffle(servers, random), maxPause: max(maxPause, time.Millisecond), over: over, random: random}
}

// Shuffle returns the servers in an order of chance.
func Shuffle(servers []string, random func(n int64) int64) []string {
	shuffled := slices.Clone(servers)
	for i := range shuffled {
		j := i + int(random(int64(len(shuffled)-i)))
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	return shuffled
}

// replace puts other servers in place of those that there are, and begins with them as if for the first time.
func (h *hosts) replace(servers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.next, h.attempts, h.known = slices.Clone(servers), 0, 0, nil
}

// addresses are what a name stands for.
type addresses struct {
	count int
	tried []string // since all of them were tried
}

// choose picks the address to try next of those that a server's name stands for, which are at least one.
func (h *hosts) choose(server string, all []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.known[server]
	i := slices.IndexFunc(all, func(address string) bool { return !slices.Contains(a.tried, address) })
	if i < 0 {
		i, a.tried = 0, nil
	}
	if h.known == nil {
		h.known = map[string]addresses{}
	}
	h.known[server] = addresses{len(all), append(a.tried, all[i])}
	return all[i]
}

func (h *hosts) has(server string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.servers, server)
}

// Init is called by the driver with the servers given to it, which are the ones we already have.
func (h *hosts) Init([]string) error { return nil }

// Len is the number of servers, as far as it is known.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count()
}

// count needs mu.
func (h *hosts) count() (n int) {
	for _, server := range h.servers {
		n += max(1, h.known[server].count)
	}
	return n
}

// round is how many times all servers have been tried since the last stable connection.
func (h *hosts) round() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.attempts-1) / h.count()
}

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

// pause is how long to wait before the attempt at hand: not at all within the first round over all servers. If none of them is
// there, nothing is gained by haste: any time up to a bound, so that clients that have lost the same servers do not come back to
// them all at once.
func (h *hosts) pause() time.Duration {
	switch h.round() {
	case 0:
		return 0
	case 1:
		return time.Duration(h.random(int64(min(firstBound, h.maxPause) + 1)))
	}
	return time.Duration(h.random(int64(h.maxPause + 1)))
}
