package conn

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

// hosts are the servers to connect to, in the order of attempts. It keeps names: each attempt resolves its name anew, and takes an
// address of it that was not tried lately, for one name may stand for several servers.
type hosts struct {
	maxPause time.Duration
	random   func(n int64) int64

	mu       sync.Mutex
	servers  []string
	known    map[string]addresses // of each server that has a name and was resolved
	index    int                  // of the server to try next
	attempts int                  // since the last stable connection
	since    time.Time            // when the present connection was made, if there is one
}

func newHosts(servers []string, maxPause time.Duration, random func(int64) int64) *hosts {
	if random == nil {
		random = rand.Int64N
	}
	return &hosts{servers: Shuffle(servers, random), maxPause: max(maxPause, time.Millisecond), random: random}
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
	h.servers, h.index, h.attempts, h.known = slices.Clone(servers), 0, 0, nil
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

// count is the number of servers, as far as it is known.
func (h *hosts) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.countLocked()
}

func (h *hosts) countLocked() (n int) {
	for _, server := range h.servers {
		n += max(1, h.known[server].count)
	}
	return n
}

// round is how many times all servers have been tried since the last stable connection.
func (h *hosts) round() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.attempts-1) / h.countLocked()
}

// next is the server to try next.
func (h *hosts) next() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.since.IsZero() && time.Since(h.since) >= stable {
		h.attempts = 0
	}
	h.since = time.Time{}
	server := h.servers[h.index]
	h.index = (h.index + 1) % len(h.servers)
	h.attempts++
	return server
}

// connected notes that a server has admitted the session.
func (h *hosts) connected() {
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
