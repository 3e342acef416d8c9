package ensemble

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Option is a setting of an [Ensemble].
type Option func(*config) error

// config has the settings of New.
type config struct {
	servers      int
	tick         time.Duration
	minSession   time.Duration // 0 means two ticks
	maxSession   time.Duration
	lines        []string
	own          map[int][]string // by server
	properties   []property
	environment  map[int][]string // by server
	distribution *Distribution
	quorumLink   linker
	electionLink linker
}

type property struct{ key, value string }

// linker returns the address at which server from connects to a port of server to. If it is nil, the
// connections are direct.
type linker func(from, to int, addr string) string

func (l linker) address(from, to int, addr string) string {
	if l == nil || from == to {
		return addr
	}
	return l(from, to, addr)
}

// WithTick sets tickTime, the server's unit of time. Sessions end with this granularity, and all
// limits of the quorum protocol are multiples of it. The default is 500 ms. Far below 200 ms,
// followers drop out on a loaded machine.
func WithTick(tick time.Duration) Option {
	return func(c *config) error {
		if tick < time.Millisecond {
			return fmt.Errorf("WithTick(%v): want 1ms or more", tick)
		}
		c.tick = tick
		return nil
	}
}

// WithSessionTimeouts sets the bounds of the session timeouts that the servers grant. A client that
// asks for less or more gets the bound, without an error. The default is from two ticks to 60 s.
func WithSessionTimeouts(least, most time.Duration) Option {
	return func(c *config) error {
		if least < time.Millisecond || most < least {
			return fmt.Errorf("WithSessionTimeouts(%v, %v): want 1ms or more, the smaller first", least, most)
		}
		c.minSession, c.maxSession = least, most
		return nil
	}
}

// WithConfig adds name=value to each server's zoo.cfg. It comes last and overrides the package's
// own. The server ignores unknown names.
func WithConfig(name, value string) Option {
	return func(c *config) error {
		line, err := configLine("WithConfig", name, value)
		c.lines = append(c.lines, line)
		return err
	}
}

// WithServerConfig is WithConfig for the server with the given number, counted from 1. It overrides
// WithConfig. With it, servers of one ensemble can grant different session timeouts:
//
//	ensemble.WithServerConfig(3, "maxSessionTimeout", "6000")
func WithServerConfig(id int, name, value string) Option {
	return func(c *config) error {
		if id < 1 || id > c.servers {
			return fmt.Errorf("WithServerConfig: server %d: there are %d", id, c.servers)
		}
		line, err := configLine("WithServerConfig", name, value)
		if c.own == nil {
			c.own = map[int][]string{}
		}
		c.own[id] = append(c.own[id], line)
		return err
	}
}

// configLine returns a line of zoo.cfg for an option.
func configLine(option, name, value string) (string, error) {
	if name == "" || strings.ContainsAny(name, "=\n") || strings.Contains(value, "\n") {
		return "", fmt.Errorf("%s: %q, %q: want a name and a value of one line", option, name, value)
	}
	return name + "=" + value, nil
}

// WithProperty sets a Java system property, for settings that zoo.cfg does not have:
//
//	ensemble.WithProperty("znode.container.checkIntervalMs", "200")
func WithProperty(key, value string) Option {
	return func(c *config) error {
		if key == "" || strings.Contains(key, "=") {
			return fmt.Errorf("WithProperty: %q is not a key", key)
		}
		c.properties = append(c.properties, property{key, value})
		return nil
	}
}

// WithServerEnvironment sets an environment variable of the server with the given number, counted from
// 1. The server has those of the test process, too. With a library that the loader of the operating
// system puts in front of the C library, a test can make the disk of one server fail:
//
//	ensemble.WithServerEnvironment(3, "LD_PRELOAD", "/tmp/stall.so")
func WithServerEnvironment(id int, name, value string) Option {
	return func(c *config) error {
		if id < 1 || id > c.servers {
			return fmt.Errorf("WithServerEnvironment: server %d: there are %d", id, c.servers)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("WithServerEnvironment: %q, %q: want a name and a value without a zero byte", name, value)
		}
		if c.environment == nil {
			c.environment = map[int][]string{}
		}
		c.environment[id] = append(c.environment[id], name+"="+value)
		return nil
	}
}

// WithDistribution uses the given installation instead of the one that [Find] finds.
func WithDistribution(d Distribution) Option {
	return func(c *config) error {
		c.distribution = &d
		return d.validate()
	}
}

// WithQuorumLink puts a proxy between the servers of an ensemble. addr is the quorum port of server
// to. link returns the address, host:port, to which server from connects instead. Followers keep a
// connection to the leader there; elections use another port, see WithElectionLink. link is called
// for every pair before any server starts, and again with each attempt to find free ports.
func WithQuorumLink(link func(from, to int, addr string) string) Option {
	return func(c *config) error {
		if link == nil {
			return fmt.Errorf("WithQuorumLink: nil")
		}
		c.quorumLink = link
		return nil
	}
}

// WithElectionLink is WithQuorumLink for the port of elections. The host of each address must be that
// of the address to which the same pair connects for the quorum, which is 127.0.0.1 without
// WithQuorumLink: a server is configured with one host and two ports.
//
// Two servers have one connection for elections, which the one with the larger number makes. If the
// other one connects first, its connection is closed, and the server with the larger number connects
// to the address that the first message has. That message has the direct address of its sender, in
// the form: protocol version and server number (8 bytes each), length (4 bytes), host:port. A proxy
// that is to carry all connections has to put another address there.
func WithElectionLink(link func(from, to int, addr string) string) Option {
	return func(c *config) error {
		if link == nil {
			return fmt.Errorf("WithElectionLink: nil")
		}
		c.electionLink = link
		return nil
	}
}

func newConfig(servers int, opts []Option) (config, error) {
	c := config{servers: servers, tick: 500 * time.Millisecond, maxSession: time.Minute}
	if !slices.Contains([]int{1, 3, 5}, servers) {
		return c, fmt.Errorf("ensemble: %d servers: want 1, 3 or 5", servers)
	}
	for _, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("ensemble: nil option")
		}
		if err := opt(&c); err != nil {
			return c, fmt.Errorf("ensemble: %w", err)
		}
	}
	if c.minSession == 0 {
		c.minSession = 2 * c.tick
	}
	if c.maxSession < c.minSession {
		return c, fmt.Errorf("ensemble: session timeouts %v to %v: want the smaller first", c.minSession, c.maxSession)
	}
	return c, nil
}
