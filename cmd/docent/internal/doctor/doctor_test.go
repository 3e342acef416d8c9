package doctor

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestMain(m *testing.M) { testzk.Main(m) }

const timeout = 8 * time.Second

// config returns what the tests examine, at some servers in memory.
func config(c *framework.Client, srv *zktest.Server, servers ...string) Config {
	return Config{
		Client: c, Timeout: timeout, Servers: servers, Dial: srv.DialContext,
		Root: "/", MaxNodes: 1000, Samples: 3, Patience: 5 * time.Second,
	}
}

// virtually runs a test in virtual time on a server of its own. By default it has ticks of a second.
func virtually(
	t *testing.T, test func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config), opts ...zktest.Option,
) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.DialContext),
			framework.WithSessionTimeout(timeout))
		test(t, srv, c, config(c, srv, srv.MemAddr()))
	}, append([]zktest.Option{zktest.WithSessionTimeouts(2*time.Second, 20*time.Second)}, opts...)...)
}

// examine returns the findings by their checks.
func examine(t testing.TB, cfg Config) map[string][]Finding {
	t.Helper()
	all := map[string][]Finding{}
	Examine(testzk.Context(t), cfg, func(f Finding) { all[f.Check] = append(all[f.Check], f) })
	return all
}

// only returns the only finding of a check.
func only(t testing.TB, all map[string][]Finding, check string) Finding {
	t.Helper()
	require.Len(t, all[check], 1, "%v", all)
	return all[check][0]
}

func TestAHealthyServerIsOK(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		cfg.Write = "/probe"
		before := srv.Tree()
		all := examine(t, cfg)
		var checks []string
		for check, findings := range all {
			checks = append(checks, check)
			for _, f := range findings {
				assert.Equal(t, OK, f.Result, f)
				assert.Empty(t, f.Advice, f)
			}
		}
		assert.ElementsMatch(t, []string{
			"server", "session timeout", "connection", "latency", "features", "clock", "ttl nodes", "locks",
			"sequence numbers", "layouts", "abandoned locks", "semaphores", "permissions",
		}, checks)
		assert.Equal(t, "8s is granted; the servers grant 2s to 20s", all["session timeout"][0].Found)
		assert.Equal(t, before, srv.Tree(), "nothing is left")
		assert.Len(t, srv.Sessions(), 1, "that of the client")
	})
}

func TestNothingIsWrittenWithoutWrite(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config) {
		acquire(t, c, "/locks/a")
		srv.ResetCounts()
		changes := 0
		srv.OnCommit(func(_ int64, all []zktest.Change) { changes += len(all) })
		all := examine(t, cfg)
		assert.Equal(t, Skip, only(t, all, "clock").Result)
		assert.Equal(t, Skip, only(t, all, "ttl nodes").Result)
		assert.Zero(t, changes)
		for _, op := range []fault.Op{fault.OpCreate, fault.OpSetData, fault.OpDelete} {
			assert.Zero(t, srv.Requests()[op], op)
		}
	})
}

func TestServersOfOneEnsembleKnowEachOthersSessions(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		cfg.Servers = append(cfg.Servers, srv.Follower(time.Second).MemAddr(), srv.Follower(0).MemAddr())
		all := examine(t, cfg)["server"]
		require.Len(t, all, 3)
		for _, f := range all {
			assert.Equal(t, OK, f.Result, f)
		}
		assert.Contains(t, all[2].Found, "knows those of "+srv.MemAddr())
		assert.Len(t, srv.Sessions(), 1, "that of the client")
	})
}

func TestServersThatGrantOtherTimeoutsFail(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		other := srv.Follower(0)
		other.SetSessionTimeouts(time.Second, 3*time.Second)
		cfg.Servers = append(cfg.Servers, other.MemAddr())
		all := examine(t, cfg)["session timeout"]
		require.Len(t, all, 2)
		assert.Equal(t, OK, all[0].Result)
		assert.Equal(t, Fail, all[1].Result)
		assert.Contains(t, all[1].Found, "grants 8s, and "+other.MemAddr()+" grants 3s")
		assert.Equal(t, boundsAdvice, all[1].Advice)
	})
}

func TestAServerOfAnotherEnsembleFails(t *testing.T) {
	t.Parallel()
	a, b := zktest.Start(t), zktest.Start(t)
	c := testzk.Connected(t, a.Addr(), framework.WithSessionTimeout(timeout))
	cfg := config(c, a, a.Addr(), b.Addr())
	cfg.Dial = new(net.Dialer).DialContext
	all := examine(t, cfg)["server"]
	require.Len(t, all, 2)
	assert.Equal(t, OK, all[0].Result)
	assert.Equal(t, Fail, all[1].Result)
	assert.Contains(t, all[1].Found, "another ensemble")
	assert.Equal(t, strangerAdvice, all[1].Advice)
}

func TestAServerThatRefusesConnectionsFailsAndTheOthersAreExamined(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	c := testzk.Connected(t, srv.Addr(), framework.WithSessionTimeout(timeout))
	cfg := config(c, srv, closed.Addr().String(), srv.Addr())
	cfg.Dial = new(net.Dialer).DialContext
	all := examine(t, cfg)
	assert.Equal(t, Fail, all["server"][0].Result)
	assert.Contains(t, all["server"][0].Found, "refused")
	assert.Equal(t, startAdvice, all["server"][0].Advice)
	assert.Equal(t, OK, all["server"][1].Result)
	assert.Equal(t, OK, only(t, all, "connection").Result)
}

// listen accepts connections and calls serve with each.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

func TestAServerThatIsNotZooKeeperFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve    func(net.Conn)
		want     string
		patience time.Duration
	}{
		"closes": {func(net.Conn) {}, "no answer to the connect request: ", testzk.Patience},
		"silent": {
			func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "no answer to the connect request: ",
			300 * time.Millisecond,
		},
		"another": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400")
			_, _ = c.Read(make([]byte, 64))
		}, "not a ZooKeeper server", testzk.Patience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			c := testzk.Client(t, srv.Addr())
			cfg := config(c, srv, listen(t, test.serve))
			cfg.Dial, cfg.Patience = new(net.Dialer).DialContext, test.patience
			e := &examination{Config: cfg}
			var all []Finding
			e.report = func(f Finding) { all = append(all, f) }
			e.servers(testzk.Context(t))
			require.Len(t, all, 1)
			assert.Equal(t, Fail, all[0].Result)
			assert.Contains(t, all[0].Found, test.want)
			assert.Equal(t, noReplyAdvice, all[0].Advice)
		})
	}
}

func TestAReadOnlyServerFails(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		srv.SetReadOnly(true)
		all := examine(t, cfg)
		f := only(t, all, "server")
		assert.Equal(t, Fail, f.Result)
		assert.Contains(t, f.Found, "read-only")
		assert.Empty(t, all["session timeout"])
		srv.SetReadOnly(false)
	})
}

func TestNoServerCanBeReached(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config) {
		session, err := c.Session(t.Context())
		require.NoError(t, err)
		srv.Stop()
		<-session.Done()
		all := examine(t, cfg)
		assert.Len(t, all, 2)
		assert.Equal(t, Fail, only(t, all, "server").Result)
		assert.Equal(t, Fail, only(t, all, "connection").Result)
		require.NoError(t, srv.Start())
	})
}

func TestAHostWithSeveralAddressesIsSeveralServers(t *testing.T) {
	e := &examination{Config: Config{
		Servers: []string{"zk:2181", "other:2181", "[::1]:2181"}, Patience: time.Minute,
		Resolve: func(_ context.Context, host string) ([]string, error) {
			switch host {
			case "zk":
				return []string{"10.0.0.1", "::2"}, nil
			case "::1":
				return []string{"::1"}, nil
			}
			return nil, fmt.Errorf("no such host %s", host)
		},
	}}
	var all []string
	for _, p := range e.peers(t.Context()) {
		all = append(all, fmt.Sprint(p.name, "|", p.address, "|", p.err))
	}
	assert.Equal(t, []string{
		"zk:2181 (10.0.0.1)|10.0.0.1:2181|<nil>", "zk:2181 (::2)|[::2]:2181|<nil>",
		"other:2181||no such host other", "[::1]:2181|[::1]:2181|<nil>",
	}, all)
	assert.Equal(t, []string{"a:2181", "[::1]:2181", "10.0.0.1:99", "[::2]:5"},
		ServersOf("a, [::1],10.0.0.1:99,[::2]:5/app/b,c"))
}

func TestSessionTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		asked, granted, least time.Duration
		want                  Result
		found                 string
	}{
		"as asked":             {30 * time.Second, 30 * time.Second, 4 * time.Second, OK, "30s is granted"},
		"less than asked":      {60 * time.Second, 40 * time.Second, 4 * time.Second, Warn, "1m0s is asked for, 40s"},
		"less than 8 ticks":    {12 * time.Second, 12 * time.Second, 4 * time.Second, Warn, "less than eight ticks"},
		"8 ticks":              {16 * time.Second, 16 * time.Second, 4 * time.Second, OK, "16s is granted"},
		"less than four ticks": {7 * time.Second, 7 * time.Second, 4 * time.Second, Fail, "less than four ticks"},
		"raised to two ticks":  {time.Second, 4 * time.Second, 4 * time.Second, Fail, "less than four ticks"},
	} {
		var all []Finding
		e := &examination{Config{Timeout: test.asked}, func(f Finding) { all = append(all, f) }}
		e.granted(test.granted, test.least, 40*time.Second)
		require.Len(t, all, 1)
		assert.Equal(t, test.want, all[0].Result, name)
		assert.Contains(t, all[0].Found, test.found, name)
		assert.Contains(t, all[0].Found, "the servers grant 4s to 40s", name)
		assert.Equal(t, test.want == OK, all[0].Advice == "", name)
	}
}

func TestClocksThatDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		least, most time.Duration
		want        Result
		found       string
	}{
		"equal":            {-time.Millisecond, time.Millisecond, OK, "ahead by 0s, ± 1ms"},
		"perhaps equal":    {-time.Minute, time.Minute, OK, "ahead by 0s, ± 1m0s"},
		"ahead":            {4 * time.Second, 6 * time.Second, Warn, "ahead by 5s, ± 1s"},
		"behind":           {-6 * time.Second, -4 * time.Second, Warn, "behind by 5s, ± 1s"},
		"set meanwhile":    {7 * time.Second, 3 * time.Second, Warn, "ahead by 5s, ± 2s"},
		"a little behind":  {-900 * time.Millisecond, -800 * time.Millisecond, OK, "behind by 850ms, ± 50ms"},
		"just a bit ahead": {999 * time.Millisecond, 1003 * time.Millisecond, OK, "ahead by 1s, ± 2ms"},
	} {
		var all []Finding
		e := &examination{report: func(f Finding) { all = append(all, f) }}
		e.offsetFound(test.least, test.most)
		require.Len(t, all, 1)
		assert.Equal(t, test.want, all[0].Result, name)
		assert.Equal(t, "that of the servers is "+test.found, all[0].Found, name)
	}
}

func TestTheClockIsMeasuredWithinTheRoundTrip(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		cfg.Write = "/probe"
		srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Delay(400*time.Millisecond))
		f := only(t, examine(t, cfg), "clock")
		assert.Equal(t, OK, f.Result)
		assert.Regexp(t, `^that of the servers is (ahead|behind) by [0-9.]+(µs|ms), ± 2[0-9]+(\.[0-9])?ms$`, f.Found)
	})
}

func TestAWrongPathToWriteFails(t *testing.T) {
	for path, want := range map[string]string{
		"/there":      "give another path",
		"/missing/it": "whose parent exists",
		"/closed/it":  "where the credentials allow",
	} {
		virtually(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config) {
			require.NoError(t, srv.Create("/there", []byte("keep")))
			_, err := c.Create(t.Context(), "/closed", nil, framework.ACL(zk.WorldACL(zk.PermRead)...))
			require.NoError(t, err)
			cfg.Write = path
			before := srv.Tree()
			all := examine(t, cfg)
			for _, check := range []string{"clock", "ttl nodes"} {
				f := only(t, all, check)
				assert.Equal(t, Fail, f.Result, f)
				assert.Contains(t, f.Advice, want)
			}
			assert.Equal(t, before, srv.Tree())
		})
	}
}

func TestServersWithoutTTL(t *testing.T) {
	virtually(t, func(t *testing.T, _ *zktest.Server, _ *framework.Client, cfg Config) {
		cfg.Write = "/probe"
		f := only(t, examine(t, cfg), "ttl nodes")
		assert.Equal(t, Warn, f.Result)
		assert.Contains(t, f.Advice, "extendedTypesEnabled=true")
	}, zktest.WithConfig("extendedTypesEnabled", "false"))
}

func TestServersBefore36(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config) {
		for _, op := range []fault.Op{fault.OpAddWatch, fault.OpMultiRead} {
			srv.On(fault.Match{Op: op, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
		}
		require.NoError(t, srv.Create("/many", nil))
		require.NoError(t, srv.SetSequence("/many", 1<<30+1))
		lease := "/semaphore/leases/" + guid + "lease-0000000000" // there is no /semaphore/locks
		_, err := c.Create(t.Context(), lease, nil, framework.Ephemeral(), framework.Parents())
		require.NoError(t, err)
		all := examine(t, cfg)
		f := only(t, all, "features")
		assert.Equal(t, Warn, f.Result)
		assert.Contains(t, f.Found, "is older than 3.6")
		assert.Equal(t, []string{"/many"}, only(t, all, "sequence numbers").Paths)
	})
}

func TestASlowEnsembleIsAWarning(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, cfg Config) {
		srv.On(fault.Match{Op: fault.OpMulti, Path: "/", Times: fault.Always}, fault.Delay(timeout/4))
		f := only(t, examine(t, cfg), "latency")
		assert.Equal(t, Warn, f.Result, f)
		assert.Regexp(t, `^a transaction takes [0-9.]+s \(median\) to [0-9.]+s \(maximum of 3\)$`, f.Found)
	})
}

func acquire(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	m, err := mutex.New(c, path)
	require.NoError(t, err)
	_, err = m.Acquire(testzk.Context(t))
	require.NoError(t, err)
}

const guid = "_c_8026b758-0c64-4418-a4a7-a40067d845c1-"
const hex = "8026b7580c644418a4a7a40067d845c1"

func TestWhatIsWrongBelowTheRootIsFound(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, cfg Config) {
		create := func(path string, opts ...framework.CreateOption) {
			t.Helper()
			_, err := c.Create(t.Context(), path, []byte("x"), append(opts, framework.Parents())...)
			require.NoError(t, err)
		}
		acquire(t, c, "/locks/fine")
		create("/locks/kazoo/"+guid+"lock-0000000000", framework.Ephemeral())
		create("/locks/kazoo/"+hex+"__lock__0000000001", framework.Ephemeral())
		create("/locks/two/"+guid+"lock-0000000000", framework.Ephemeral())
		create("/locks/two/"+guid+"__WRIT__0000000001", framework.Ephemeral())
		create("/locks/left/" + guid + "lock-0000000000")
		create("/locks/behind/"+guid+"lock-0000000000", framework.Ephemeral())
		create("/locks/behind/" + guid + "lock-0000000001")
		create("/locks/foreign/"+guid+"lock-0000000000", framework.Ephemeral())
		create("/locks/foreign/config")
		acquire(t, c, "/locks/limit")
		for _, path := range []string{"/locks/limit", "/locks/limits", "/locks/all"} {
			s, err := semaphore.New(c, path, 2)
			require.NoError(t, err)
			_, err = s.Acquire(t.Context())
			require.NoError(t, err)
		}
		create("/locks/all/"+guid+"__READ__0000000002", framework.Ephemeral())
		create("/locks/all/config")
		create("/locks/end/"+guid+"lock-2147483647", framework.Ephemeral())
		create("/locks/end2/"+guid+"lock--2147483648", framework.Ephemeral())
		require.NoError(t, srv.Create("/locks/near", nil))
		require.NoError(t, srv.SetSequence("/locks/near", 1<<30+1))
		require.NoError(t, srv.Create("/locks/half", nil))
		require.NoError(t, srv.SetSequence("/locks/half", 1<<30-1))
		s, err := semaphore.New(c, "/locks/sem", 2)
		require.NoError(t, err)
		_, err = s.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		require.NoError(t, srv.SetSequence("/locks/sem/leases", 1<<30+5))
		require.NoError(t, srv.Set("/locks/sem", []byte{0, 0, 0, 1}))
		create("/locks/secret", framework.ACL(zk.DigestACL(zk.PermAll, "user", "secret")...))
		cfg.Root = "/locks"

		type found struct {
			check  string
			result Result
			paths  string
		}
		var got []found
		Examine(t.Context(), cfg, func(f Finding) {
			if len(f.Paths) > 0 {
				got = append(got, found{f.Check, f.Result, strings.Join(f.Paths, " ")})
				assert.Regexp(t, fmt.Sprintf("^%d ", len(f.Paths)), f.Found)
				assert.NotEmpty(t, f.Advice)
			}
		})
		assert.Equal(t, []found{
			{"sequence numbers", Fail, "/locks/end /locks/end2"},
			{"sequence numbers", Warn, "/locks/near /locks/sem/leases"},
			{"layouts", Fail, "/locks/kazoo"},
			{"layouts", Fail, "/locks/two"},
			{"layouts", Warn, "/locks/all /locks/limit"},
			{"layouts", Warn, "/locks/all /locks/foreign /locks/two"},
			{"abandoned locks", Fail, "/locks/left"},
			{"abandoned locks", Warn, "/locks/behind /locks/left"},
			{"semaphores", Warn, "/locks/sem"},
			{"permissions", Warn, "/locks/secret"},
		}, got)
	})
}

func TestAWalkThatIsCutOffSaysSo(t *testing.T) {
	virtually(t, func(t *testing.T, _ *zktest.Server, c *framework.Client, cfg Config) {
		acquire(t, c, "/locks/a")
		cfg.MaxNodes = 1
		all := examine(t, cfg)
		assert.Equal(t, Warn, only(t, all, "locks").Result)
		assert.Empty(t, all["layouts"], "not said to be fine")
		cfg.Root = "/missing"
		all = examine(t, cfg)
		assert.Equal(t, Fail, only(t, all, "locks").Result)
		assert.Empty(t, all["layouts"])
	})
}

func TestTheEndOfTheContextEndsAll(t *testing.T) {
	virtually(t, func(t *testing.T, _ *zktest.Server, _ *framework.Client, cfg Config) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Examine(ctx, cfg, func(f Finding) { assert.Contains(t, []Result{Fail, Skip}, f.Result, f) })
	})
}
