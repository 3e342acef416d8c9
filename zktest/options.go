package zktest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// Compat is the version of ZooKeeper that a server follows where versions differ.
type Compat int

// The versions. They differ in the transaction id of watch events and in the result of watching a
// path in two ways. They also differ in the permissions that reads need and in answers to malformed
// requests.
const (
	V39 Compat = iota // 3.9, the default
	V38               // 3.8, as Debian 12 packages it
)

// Option is a setting of a [Server].
type Option func(*config) error

// WithCompat chooses the version. The default is [V39].
func WithCompat(v Compat) Option {
	return func(c *config) error {
		if v != V39 && v != V38 {
			return fmt.Errorf("WithCompat(%d): want V39 or V38", v)
		}
		c.compat = v
		return nil
	}
}

// WithTick sets the precision of time: sessions expire at the first tick after their timeout. The
// default is 100 ms.
func WithTick(d time.Duration) Option {
	return func(c *config) error {
		if d < time.Millisecond {
			return fmt.Errorf("WithTick(%v): want 1ms or more", d)
		}
		c.tick = d
		return nil
	}
}

// WithSessionTimeouts sets the bounds of the timeouts that clients may ask for. The default is from
// 2 ticks to an hour, so that tests get what they ask for. The real server's upper bound is 20
// ticks.
func WithSessionTimeouts(least, most time.Duration) Option {
	return func(c *config) error {
		if least < time.Millisecond || most < least {
			return fmt.Errorf("WithSessionTimeouts(%v, %v): want 1ms or more, the smaller first", least, most)
		}
		c.least, c.most = least, most
		return nil
	}
}

// WithSeed gives each delivery between server and clients that connect in memory a latency of 0.1
// to 2 ms. The latency depends only on the seed, the client, the direction and the number of the
// delivery. In a bubble of testing/synctest the whole run then depends only on the seed, unless the
// clients have other sources of chance; see package sim. Clients need names, see [Server.Client].
func WithSeed(seed int64) Option {
	return func(c *config) error {
		c.seed = &seed
		return nil
	}
}

// WithListener makes the server listen on address, host:port, from the start. Without it the first
// call of [Server.Addr] opens a free port on the loopback interface.
func WithListener(address string) Option {
	return func(c *config) error {
		c.listen = address
		return nil
	}
}

// WithConfig sets a value that the real server takes from its configuration file or from a system
// property. The names are the real ones, with or without "zookeeper." in front:
//
//	DigestAuthenticationProvider.superDigest  user:hash of the user that has all permissions
//	jute.maxbuffer                            largest request in bytes
//	maxClientCnxns                            connections from one address over TCP; 0, the default, means no limit
//	znode.container.checkIntervalMs           interval of the checks of containers and TTL nodes
//	znode.container.maxNeverUsedIntervalMs    time that a container may stay that never had a child; 0, the default,
//	                                          means no limit
//	enforceQuota                              whether hard quotas refuse writes; false by default
//	extendedTypesEnabled                      whether there are TTL nodes; true by default, unlike the real server
//	4lw.commands.whitelist                    the four-letter words that are answered; * by default, unlike the real
//	                                          server; srvr is always answered
//	readonlymode.enabled                      whether isro is always answered; false by default. A server becomes
//	                                          read-only only by [Server.SetReadOnly], which needs no setting
//	nio.sessionlessCnxnTimeout                time that a connection may be without a session, in milliseconds, 10000 by
//	                                          default; the connection ends within twice that time
//	syncLimit                                 ticks that the servers of an ensemble wait for each other; 5 by default
//	tickTime, minSessionTimeout, maxSessionTimeout  in milliseconds; tickTime sets the default of the last to 20 ticks,
//	                                          as with the real server: give them in this order
//
// An unknown name is an error. Names that only concern disks, threads and the like are ignored. The
// names authProvider.N and DigestAuthenticationProvider.enabled are errors too: the schemes are
// world, ip, auth and digest, and no provider can be added or removed.
func WithConfig(name, value string) Option {
	return func(c *config) error {
		set, ok := settings[strings.TrimPrefix(name, "zookeeper.")]
		if !ok {
			return fmt.Errorf("WithConfig: %s=%s: no such setting", name, value)
		}
		if err := set(c, value); err != nil {
			return fmt.Errorf("WithConfig: %s=%s: %w", name, value, err)
		}
		return nil
	}
}

type config struct {
	compat       Compat
	tick         time.Duration
	least, most  time.Duration // of session timeouts; 0 means derived from tick
	seed         *int64
	listen       string
	superDigest  string
	maxFrame     int
	maxConns     int
	reapEvery    time.Duration
	neverUsed    time.Duration
	noTTL        bool
	enforceQuota bool
	words        []string // the four-letter words that are answered, besides srvr
	readOnlyMode bool     // isro is answered too
	traceLimit   int
	syncLimit    int           // number of ticks that servers wait for each other
	sessionless  time.Duration // time that a connection may be without a session, and the precision of that time
}

func newConfig(opts []Option) (config, error) {
	c := config{
		tick: 100 * time.Millisecond, most: time.Hour, maxFrame: proto.DefaultMaxFrame,
		syncLimit: 5, reapEvery: time.Minute, words: []string{"*"}, traceLimit: 10_000, sessionless: 10 * time.Second,
	}
	for _, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("zktest: nil option")
		}
		if err := opt(&c); err != nil {
			return c, fmt.Errorf("zktest: %w", err)
		}
	}
	if c.least == 0 {
		c.least = 2 * c.tick
	}
	if c.most < c.least {
		return c, fmt.Errorf("zktest: session timeouts %v to %v: want the smaller first", c.least, c.most)
	}
	return c, nil
}

func (c config) rules() tree.Rules {
	old := c.compat == V38
	return tree.Rules{
		OldIPRules: old, OldMultiCreate2: old, ExistsNeedsRead: !old, NoTTL: c.noTTL, StrictMultiFlags: !old,
		EnforceQuota: c.enforceQuota,
	}
}

// timeout returns the timeout that a client gets if it asks for asked.
func (c config) timeout(asked time.Duration) time.Duration {
	return min(max(asked, c.least), c.most)
}

func (c config) answersWord(word string) bool {
	return word == "srvr" || word == "isro" && c.readOnlyMode ||
		slices.Contains(c.words, "*") || slices.Contains(c.words, word)
}

var settings = map[string]func(*config, string) error{
	"DigestAuthenticationProvider.superDigest": func(c *config, v string) error {
		c.superDigest = v
		return nil
	},
	"4lw.commands.whitelist": func(c *config, v string) error {
		c.words = nil
		for word := range strings.SplitSeq(v, ",") {
			c.words = append(c.words, strings.TrimSpace(word))
		}
		return nil
	},
	"extendedTypesEnabled":                   boolean(func(c *config, on bool) { c.noTTL = !on }),
	"enforceQuota":                           boolean(func(c *config, on bool) { c.enforceQuota = on }),
	"readonlymode.enabled":                   boolean(func(c *config, on bool) { c.readOnlyMode = on }),
	"syncLimit":                              number(func(c *config, n int) { c.syncLimit = max(n, 1) }),
	"jute.maxbuffer":                         number(func(c *config, n int) { c.maxFrame = n }),
	"maxClientCnxns":                         number(func(c *config, n int) { c.maxConns = n }),
	"tickTime":                               millis(setTick),
	"minSessionTimeout":                      millis(func(c *config, d time.Duration) { c.least = d }),
	"maxSessionTimeout":                      millis(func(c *config, d time.Duration) { c.most = d }),
	"nio.sessionlessCnxnTimeout":             millis(setSessionless),
	"znode.container.checkIntervalMs":        millis(setReapEvery),
	"znode.container.maxNeverUsedIntervalMs": millis(func(c *config, d time.Duration) { c.neverUsed = d }),
	"admin.enableServer":                     ignored,
	"clientPort":                             ignored,
	"clientPortAddress":                      ignored,
	"dataDir":                                ignored,
	"dataLogDir":                             ignored,
	"fsync.warningthresholdms":               ignored,
	"forceSync":                              ignored,
	"preAllocSize":                           ignored,
	"snapCount":                              ignored,
	"standaloneEnabled":                      ignored,
	"autopurge.purgeInterval":                ignored,
	"autopurge.snapRetainCount":              ignored,
}

func ignored(*config, string) error { return nil }

func setTick(c *config, d time.Duration) { c.tick, c.most = max(d, time.Millisecond), 20*d }

func setSessionless(c *config, d time.Duration) { c.sessionless = max(d, time.Millisecond) }

func setReapEvery(c *config, d time.Duration) { c.reapEvery = max(d, time.Millisecond) }

func number(set func(*config, int)) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.ParseUint(v, 0, 31)
		set(c, int(n))
		return err
	}
}

func boolean(set func(*config, bool)) func(*config, string) error {
	return func(c *config, v string) error {
		on, err := strconv.ParseBool(v)
		set(c, on)
		return err
	}
}

func millis(set func(*config, time.Duration)) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.ParseUint(v, 10, 31)
		set(c, time.Duration(min(n, math.MaxInt32))*time.Millisecond)
		return err
	}
}
