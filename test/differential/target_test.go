package differential

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// target is a server to drive.
type target interface {
	name() string
	dial() (*rawzk.Conn, error)
	stop() error
	start() error // after stop, with the same port, state and sessions
}

// config is the same for both servers. Zero durations stand for the defaults below. The keys of
// properties are those of zoo.cfg, or names of system properties where zoo.cfg has no key.
type config struct {
	tick, shortest, longest time.Duration
	properties              map[string]string
}

const (
	defaultTick    = 500 * time.Millisecond
	defaultLongest = time.Minute // longer than scenarios that do not wait for the end of a session
)

func (c config) withDefaults() config {
	if c.tick == 0 {
		c.tick = defaultTick
	}
	if c.shortest == 0 {
		c.shortest = 2 * c.tick
	}
	if c.longest == 0 {
		c.longest = defaultLongest
	}
	all := map[string]string{
		"extendedTypesEnabled":            "true",
		"4lw.commands.whitelist":          "*",
		"maxClientCnxns":                  "0",
		"znode.container.checkIntervalMs": "3600000", // nothing is reaped by default
	}
	for key, value := range c.properties {
		all[key] = value
	}
	c.properties = all
	return c
}

// isSystemProperty reports whether key is a name that zoo.cfg does not accept.
func isSystemProperty(key string) bool {
	return key == "jute.maxbuffer" || key == "readonlymode.enabled" || strings.HasPrefix(key, "znode.") ||
		strings.HasPrefix(key, "zookeeper.")
}

// realServer is the installed server.
type realServer struct {
	ensemble *ensemble.Ensemble
	server   *ensemble.Server
}

func startReal(t *testing.T, c config) realServer {
	t.Helper()
	realzk.Need(t)
	e := ensemble.Start(t, 1, c.ensembleOptions()...)
	return realServer{e, e.Servers()[0]}
}

func (c config) ensembleOptions() []ensemble.Option {
	opts := []ensemble.Option{ensemble.WithTick(c.tick), ensemble.WithSessionTimeouts(c.shortest, c.longest)}
	for key, value := range c.properties {
		if isSystemProperty(key) {
			opts = append(opts, ensemble.WithProperty(key, value))
		} else {
			opts = append(opts, ensemble.WithConfig(key, value))
		}
	}
	return opts
}

func (r realServer) name() string { return "the real server" }
func (r realServer) stop() error  { return r.server.Stop() }

func (r realServer) dial() (*rawzk.Conn, error) { return rawzk.Dial(r.server.Addr()) }

func (r realServer) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.server.Start(ctx); err != nil {
		return err
	}
	return r.ensemble.WaitReady(ctx)
}

// pair is two servers of the same configuration.
type pair struct{ left, right target }

func startPair(t *testing.T, c config) pair {
	t.Helper()
	c = c.withDefaults()
	switch which := os.Getenv("DIFFERENTIAL"); which {
	case "":
		left := startReal(t, c)
		return pair{left, startFake(t, c, left.compat(t))}
	case "memory":
		left := startReal(t, c)
		return pair{left, startFakeInMemory(t, c, left.compat(t))}
	case "real":
		return pair{startReal(t, c), startReal(t, c)}
	case "fake":
		return pair{startFake(t, c, zktest.V38), startFake(t, c, zktest.V38)}
	default:
		t.Fatalf("DIFFERENTIAL=%q: want nothing, real, fake or memory", which)
		return pair{}
	}
}

func pairName() string {
	switch os.Getenv("DIFFERENTIAL") {
	case "real":
		return "two real servers"
	case "fake":
		return "two zktest servers"
	case "memory":
		return "the real server and zktest in memory"
	}
	return "the real server and zktest"
}
