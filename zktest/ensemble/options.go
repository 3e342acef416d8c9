package ensemble

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Option changes how an ensemble is set up.
type Option func(*config)

// config has the settings of New. validate has checked them.
type config struct {
	servers      int
	tick         time.Duration
	minSession   time.Duration // 0 means two ticks
	maxSession   time.Duration
	lines        []string
	own          map[int][]string // by server
	properties   []property
	distribution *Distribution
	link         func(from, to int, addr string) string // nil means a direct connection
}

type property struct{ key, value string }

// WithTick sets tickTime, the server's unit of time. Sessions end with this granularity, and all
// limits of the quorum protocol are multiples of it. The default is 500 ms. Far below 200 ms,
// followers drop out on a loaded machine.
func WithTick(tick time.Duration) Option {
	return func(c *config) { c.tick = tick }
}

// WithSessionTimeouts sets the bounds of the session timeouts that the servers grant. A client that
// asks for less or more gets the bound, without an error. The default is from two ticks to 60 s.
func WithSessionTimeouts(shortest, longest time.Duration) Option {
	return func(c *config) { c.minSession, c.maxSession = shortest, longest }
}

// WithConfig appends lines of the form key=value to each server's zoo.cfg. They come last and
// override the package's own. The server ignores unknown keys.
func WithConfig(lines ...string) Option {
	return func(c *config) { c.lines = append(c.lines, lines...) }
}

// WithServerConfig is WithConfig for the server with the given number, counted from 1. Its lines
// override those of WithConfig. With it, servers of one ensemble can grant different session
// timeouts:
//
//	ensemble.WithServerConfig(3, "maxSessionTimeout=6000")
func WithServerConfig(id int, lines ...string) Option {
	return func(c *config) {
		if c.own == nil {
			c.own = map[int][]string{}
		}
		c.own[id] = append(c.own[id], lines...)
	}
}

// WithProperty sets a Java system property, for settings that zoo.cfg does not have:
//
//	ensemble.WithProperty("znode.container.checkIntervalMs", "200")
func WithProperty(key, value string) Option {
	return func(c *config) { c.properties = append(c.properties, property{key, value}) }
}

// WithDistribution uses the given installation instead of the one that [Find] finds.
func WithDistribution(d Distribution) Option {
	return func(c *config) { c.distribution = &d }
}

// WithQuorumLink puts a proxy between the servers of an ensemble. addr is the quorum port of server
// to. link returns the address, host:port, to which server from connects instead. Followers keep a
// connection to the leader there; elections use another port. link is called for every pair before
// any server starts, and again with each attempt to find free ports.
func WithQuorumLink(link func(from, to int, addr string) string) Option {
	return func(c *config) { c.link = link }
}

func newConfig(servers int, opts []Option) (config, error) {
	c := config{servers: servers, tick: 500 * time.Millisecond, maxSession: time.Minute}
	for _, opt := range opts {
		opt(&c)
	}
	if err := c.validate(); err != nil {
		return config{}, fmt.Errorf("ensemble: %w", err)
	}
	return c, nil
}

func (c *config) validate() error {
	if c.servers != 1 && c.servers != 3 && c.servers != 5 {
		return fmt.Errorf("%d servers: want 1, 3 or 5", c.servers)
	}
	if c.tick < time.Millisecond {
		return fmt.Errorf("tick %v: want at least 1ms", c.tick)
	}
	if c.minSession == 0 {
		c.minSession = 2 * c.tick
	}
	if c.minSession < time.Millisecond || c.maxSession < c.minSession {
		return fmt.Errorf("session time-outs from %v to %v: want 1ms <= shortest <= longest",
			c.minSession, c.maxSession)
	}
	return c.validateExtras()
}

func (c *config) validateExtras() error {
	all := slices.Clone(c.lines)
	for id, lines := range c.own {
		if id < 1 || id > c.servers {
			return fmt.Errorf("config of server %d: there are %d", id, c.servers)
		}
		all = append(all, lines...)
	}
	for _, line := range all {
		if !strings.Contains(line, "=") {
			return fmt.Errorf("config line %q: want key=value", line)
		}
	}
	for _, p := range c.properties {
		if p.key == "" || strings.Contains(p.key, "=") {
			return fmt.Errorf("property %q: not a key", p.key)
		}
	}
	if c.distribution != nil {
		return c.distribution.validate()
	}
	return nil
}
