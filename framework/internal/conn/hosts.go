package conn

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// longestFirstPause limits the pauses of the first round that has any, longestPause all later
	// ones.
	longestFirstPause = time.Second
	longestPause      = 2 * time.Second
	// stableAfter is how long a connection must last before the next attempts start without pauses
	// again. Without this limit, a server that accepts connections and closes them would be dialled
	// without any pause.
	stableAfter = time.Second
)

// hosts has the servers to connect to, in the order of attempts. It keeps names: each attempt
// resolves its name anew. One name may stand for several servers. So an attempt takes an address of
// the name that was not tried recently.
type hosts struct {
	maxPause time.Duration
	random   func(n int64) int64

	mu          sync.Mutex
	servers     []string
	resolved    map[string]addresses // by server, once its name was resolved
	index       int                  // of the next server to try
	attempts    int                  // since the last stable connection
	connectedAt time.Time            // when the current connection was made; zero if there is none
}

func newHosts(servers []string, maxPause time.Duration, random func(int64) int64) *hosts {
	if random == nil {
		random = rand.Int64N
	}
	return &hosts{servers: Shuffle(servers, random), maxPause: max(maxPause, time.Millisecond), random: random}
}

// Shuffle returns a copy of servers in random order.
func Shuffle(servers []string, random func(n int64) int64) []string {
	shuffled := slices.Clone(servers)
	for i := range shuffled {
		j := i + int(random(int64(len(shuffled)-i)))
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	return shuffled
}

// replace sets new servers. The next attempt is the first of the first round.
func (h *hosts) replace(servers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers, h.index, h.attempts, h.resolved = slices.Clone(servers), 0, 0, nil
}

// addresses are the addresses of a name.
type addresses struct {
	count int
	tried []string // in the current round over them
}

// choose returns the address of server to try next. all has at least one address.
func (h *hosts) choose(server string, all []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.resolved[server]
	i := slices.IndexFunc(all, func(address string) bool { return !slices.Contains(a.tried, address) })
	if i < 0 {
		i, a.tried = 0, nil
	}
	if h.resolved == nil {
		h.resolved = map[string]addresses{}
	}
	h.resolved[server] = addresses{len(all), append(a.tried, all[i])}
	return all[i]
}

func (h *hosts) has(server string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.servers, server)
}

// count returns the number of servers. Each known address of a name counts as one.
func (h *hosts) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.countLocked()
}

func (h *hosts) countLocked() (n int) {
	for _, server := range h.servers {
		n += max(1, h.resolved[server].count)
	}
	return n
}

// round returns how many times all servers have been tried since the last stable connection.
func (h *hosts) round() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.attempts-1) / h.countLocked()
}

// next returns the server to try next.
func (h *hosts) next() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.connectedAt.IsZero() && time.Since(h.connectedAt) >= stableAfter {
		h.attempts = 0
	}
	h.connectedAt = time.Time{}
	server := h.servers[h.index]
	h.index = (h.index + 1) % len(h.servers)
	h.attempts++
	return server
}

// connected records that a server has accepted the session.
func (h *hosts) connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connectedAt = time.Now()
}

// pause returns how long to wait before the current attempt. There is no pause in the first round
// over all servers. Later rounds have random pauses up to a limit. Without them, clients that have
// lost the same servers would all come back at the same moment.
func (h *hosts) pause() time.Duration {
	switch h.round() {
	case 0:
		return 0
	case 1:
		return time.Duration(h.random(int64(min(longestFirstPause, h.maxPause) + 1)))
	}
	return time.Duration(h.random(int64(h.maxPause + 1)))
}
