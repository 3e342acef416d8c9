package zktest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

func TestBadOptionsAreErrorsThatNameTheValue(t *testing.T) {
	config := zktest.WithConfig
	tests := map[string]struct {
		option zktest.Option
		want   string
	}{
		"nil":           {nil, "zktest: nil option"},
		"compat":        {zktest.WithCompat(7), "zktest: WithCompat(7)"},
		"tick":          {zktest.WithTick(0), "zktest: WithTick(0s)"},
		"negative tick": {zktest.WithTick(-time.Second), "zktest: WithTick(-1s)"},
		"small tick":    {zktest.WithTick(time.Microsecond), "zktest: WithTick(1µs)"},
		"timeouts":      {zktest.WithSessionTimeouts(0, time.Second), "zktest: WithSessionTimeouts(0s, 1s)"},
		"reversed timeouts": {
			zktest.WithSessionTimeouts(2*time.Second, time.Second), "zktest: WithSessionTimeouts(2s, 1s)",
		},
		"least above most":   {config("minSessionTimeout", "7200000"), "zktest: session timeouts 2h0m0s to 1h0m0s"},
		"unknown":            {config("nosuch", "1"), "zktest: WithConfig: nosuch=1: no such setting"},
		"unknown, qualified": {config("zookeeper.nosuch", "1"), "WithConfig: zookeeper.nosuch=1: no such setting"},
		"no number":          {config("jute.maxbuffer", "many"), "zktest: WithConfig: jute.maxbuffer=many"},
		"negative number":    {config("maxClientCnxns", "-1"), "zktest: WithConfig: maxClientCnxns=-1"},
		"too many":           {config("maxClientCnxns", "4294967296"), "zktest: WithConfig: maxClientCnxns=4294967296"},
		"no milliseconds":    {config("tickTime", "1s"), "zktest: WithConfig: tickTime=1s"},
		"no boolean": {
			config("extendedTypesEnabled", "maybe"), "zktest: WithConfig: extendedTypesEnabled=maybe",
		},
		"no quota boolean": {config("enforceQuota", ""), "zktest: WithConfig: enforceQuota="},
		"no other boolean": {config("readonlymode.enabled", "on"), "zktest: WithConfig: readonlymode.enabled=on"},
		"no provider":      {config("authProvider.1", "x"), "zktest: WithConfig: authProvider.1=x: no such setting"},
		"no port":          {zktest.WithListener("127.0.0.1"), "127.0.0.1"},
		"no such port":     {zktest.WithListener("127.0.0.1:99999"), "99999"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := zktest.New(test.option)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestSettingsMayBeQualifiedAndThoseOfDisksAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "a")
		require.Equal(t, 20*time.Second, srv.Sessions()[0].Timeout)
	}, zktest.WithConfig("zookeeper.minSessionTimeout", "20000"),
		zktest.WithConfig("zookeeper.maxSessionTimeout", "30000"),
		zktest.WithConfig("dataDir", "/nowhere"), zktest.WithConfig("snapCount", "7"))
}

func TestLargestRequestCanBeSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.Create("/x", make([]byte, 200), 0, open)
		require.NoError(t, err)
		_, err = conn.Create("/y", make([]byte, 2000), 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.False(t, srv.Exists("/y"))
	}, zktest.WithConfig("jute.maxbuffer", "1000"))
}

func TestNodesWithATimeToLiveCanBeDisabled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, err := connect(t, srv, "a").CreateTTL("/x", nil, zk.FlagTTL, open, time.Hour)
		require.Error(t, err)
		require.Equal(t, zktest.Unimplemented, traced(srv, "createTTL")[0].Code)
		require.False(t, srv.Exists("/x"))
	}, zktest.WithConfig("extendedTypesEnabled", "false"))
}

func TestSuperUserHasAllPermissions(t *testing.T) {
	const digest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=" // of super:secret
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.Create("/x", nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
		require.NoError(t, err)
		require.NoError(t, conn.AddAuth("digest", []byte("super:wrong")))
		_, _, err = conn.Get("/x")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, conn.AddAuth("digest", []byte("super:secret")))
		_, _, err = conn.Get("/x")
		require.NoError(t, err)
	}, zktest.WithConfig("DigestAuthenticationProvider.superDigest", digest))
}

func TestSettingSetsTheIntervalForContainers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.CreateContainer("/c", nil, 4, open)
		require.NoError(t, err)
		require.NoError(t, create(conn, "/c/child"))
		require.NoError(t, conn.Delete("/c/child", -1))
		time.Sleep(10*time.Second - 1)
		require.True(t, srv.Exists("/c"))
		time.Sleep(2 * time.Nanosecond)
		require.False(t, srv.Exists("/c"))
	}, zktest.WithConfig("znode.container.checkIntervalMs", "10000"))
}

func TestContainerThatNeverHadAChildStaysForATime(t *testing.T) {
	for setting, want := range map[string]bool{"0": true, "60000": false} {
		t.Run(setting, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				_, err := connect(t, srv, "a").CreateContainer("/c", nil, 4, open)
				require.NoError(t, err)
				time.Sleep(time.Hour)
				require.Equal(t, want, srv.Exists("/c"))
			}, zktest.WithConfig("znode.container.maxNeverUsedIntervalMs", setting))
		})
	}
}

func TestLatenciesAreBetweenATenthAndTwoMilliseconds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		took := map[time.Duration]bool{}
		for range 100 {
			begun := time.Now()
			_, _, err := conn.Get("/")
			require.NoError(t, err)
			d := time.Since(begun)
			require.GreaterOrEqual(t, d, 200*time.Microsecond)
			require.LessOrEqual(t, d, 4*time.Millisecond+2*time.Microsecond)
			took[d] = true
		}
		require.Greater(t, len(took), 50)
	}, zktest.WithSeed(1))
}

func TestLatenciesAreAFunctionOfTheSeed(t *testing.T) {
	run := func(seed int64) (trace string) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			conn := connect(t, srv, "a")
			for range 10 {
				_, _, err := conn.Get("/")
				require.NoError(t, err)
			}
			trace = srv.Trace().String()
		}, zktest.WithSeed(seed))
		return trace
	}
	first := run(1)
	require.Equal(t, first, run(1))
	require.NotEqual(t, first, run(2))
}

func TestConnectionWithoutASessionEndsAfterTheTimeThatIsSet(t *testing.T) {
	for setting, want := range map[string]time.Duration{"1000": 2 * time.Second, "30000": time.Minute} {
		t.Run(setting, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				time.Sleep(time.Millisecond) // otherwise the connection would start at a multiple of the timeout
				c := dialRaw(t, srv.Client("a"), srv.MemAddr())
				began := time.Now()
				_, err := c.ReadFrame(time.Hour)
				require.ErrorIs(t, err, rawzk.ErrClosed)
				require.Equal(t, want-time.Millisecond, time.Since(began))
			}, zktest.WithConfig("zookeeper.nio.sessionlessCnxnTimeout", setting))
		})
	}
}
