//go:build unix

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
)

func TestStandaloneServesAClient(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	conn := client(t, e.Connect())
	create(t, conn, "/a", "data")
	require.Equal(t, "data", get(t, conn, "/a"))

	leader, err := e.Leader(timeout(t))
	require.NoError(t, err)
	require.Same(t, e.Servers()[0], leader)
	require.Equal(t, e.Connect(), leader.Addr())
	require.Equal(t, 1, leader.ID())
}

func TestOptionsReachTheServer(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1,
		WithTick(time.Second),
		WithSessionTimeouts(3*time.Second, 7*time.Second),
		WithConfig("maxClientCnxns", "17"),
		WithProperty("docent.test", "yes"))
	s := e.Servers()[0]
	conf, err := s.Command(timeout(t), "conf")
	require.NoError(t, err)
	want := []string{"tickTime=1000", "minSessionTimeout=3000", "maxSessionTimeout=7000", "maxClientCnxns=17"}
	for _, line := range want {
		require.Contains(t, conf, line+"\n")
	}
	env, err := s.Command(timeout(t), "envi")
	require.NoError(t, err)
	require.Contains(t, env, "java.io.tmpdir="+s.dir)
	require.Contains(t, strings.Join(s.args, " "), "-Ddocent.test=yes")
}

func TestExtendedTypesAreOn(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1, WithProperty("znode.container.checkIntervalMs", "100"))
	conn := client(t, e.Connect())
	_, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Millisecond)
	require.NoError(t, err)
	eventually(t, "the node's time passes", func() bool {
		exists, _, err := conn.Exists("/ttl")
		return err == nil && !exists
	})
}

func TestStopAndStartKeepData(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s := e.Servers()[0]
	create(t, client(t, e.Connect()), "/kept", "data")
	addr := s.Addr()

	require.ErrorContains(t, s.Start(timeout(t)), "already running")
	require.ErrorContains(t, s.Wipe(), "running")
	require.NoError(t, s.Stop())
	require.False(t, s.Running())
	require.NoError(t, s.Stop(), "a second stop does nothing")
	require.ErrorContains(t, s.Pause(), "not running")
	require.ErrorContains(t, e.WaitReady(timeout(t)), "no server is running")

	require.NoError(t, s.Start(timeout(t)))
	require.NoError(t, e.WaitReady(timeout(t)))
	require.Equal(t, addr, s.Addr())
	// A server that is about to start leaves some connections open and unanswered. The driver waits
	// on such a connection for longer than the test.
	require.Equal(t, "data", get(t, client(t, e.Connect()), "/kept"))
}

func TestWipeLosesData(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s := e.Servers()[0]
	create(t, client(t, e.Connect()), "/lost", "")
	require.NoError(t, s.Kill())
	require.NoError(t, s.Wipe())
	require.NoError(t, s.Start(timeout(t)))
	require.NoError(t, e.WaitReady(timeout(t)))

	exists, _, err := client(t, e.Connect()).Exists("/lost")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestRestoredServerHasTheDataOfTheBackup(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s, folder := e.Servers()[0], filepath.Join(t.TempDir(), "backup")
	require.ErrorContains(t, s.Backup(folder), "running")
	create(t, client(t, e.Connect()), "/kept", "before")
	require.NoError(t, s.Kill())
	require.ErrorIs(t, s.Restore(folder), os.ErrNotExist)
	require.NoError(t, s.Backup(folder))
	require.ErrorIs(t, s.Backup(folder), os.ErrExist)
	require.NoError(t, s.Start(timeout(t)))
	require.NoError(t, e.WaitReady(timeout(t)))
	create(t, client(t, e.Connect()), "/lost", "")
	require.ErrorContains(t, s.Restore(folder), "running")
	require.NoError(t, s.Kill())

	require.NoError(t, s.Restore(folder))
	require.NoError(t, s.Start(timeout(t)))
	require.NoError(t, e.WaitReady(timeout(t)))
	conn := client(t, e.Connect())
	require.Equal(t, "before", get(t, conn, "/kept"))
	exists, _, err := conn.Exists("/lost")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestEnvironmentOfOneServer(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1, WithServerEnvironment(1, "JAVA_TOOL_OPTIONS", "-Dof.this.server=yes"))
	var logs strings.Builder
	e.Logs(&logs, 1000)
	require.Contains(t, logs.String(), "-Dof.this.server=yes")
	for _, bad := range []Option{
		WithServerEnvironment(2, "a", "b"), WithServerEnvironment(0, "a", "b"), WithServerEnvironment(1, "", "b"),
		WithServerEnvironment(1, "a=", "b"), WithServerEnvironment(1, "a", "\x00"),
	} {
		_, err := newConfig(1, []Option{bad})
		require.ErrorContains(t, err, "WithServerEnvironment")
	}
}

func TestPausedServerIsSilentAndStoppable(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s := e.Servers()[0]
	require.NoError(t, s.Pause())
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Command(ctx, "ruok")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, s.Resume())
	require.NoError(t, e.WaitReady(timeout(t)))
	answer, err := s.Command(timeout(t), "ruok")
	require.NoError(t, err)
	require.Equal(t, "imok", answer)

	require.NoError(t, s.Pause())
	before := time.Now()
	require.NoError(t, s.Stop())
	require.Less(t, time.Since(before), stopGrace, "it was resumed and stopped, not killed")
}

func TestDeadServerIsReported(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s := e.Servers()[0]
	p, _ := s.current()
	require.NoError(t, p.os.Kill())
	<-p.done
	err := e.WaitReady(timeout(t))
	require.ErrorIs(t, err, errDied)
	require.ErrorContains(t, err, "signal: killed")
	require.False(t, s.Running())
}

func TestStartOnATakenPortFails(t *testing.T) {
	realzk.Need(t)
	e := Start(t, 1)
	s := e.Servers()[0]
	require.NoError(t, s.Kill())
	thief, err := net.Listen("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { _ = thief.Close() }()

	p, err := s.launch()
	require.NoError(t, err)
	<-p.done
	require.ErrorIs(t, s.checkAlive(p), errPortTaken)

	require.NoError(t, thief.Close())
	require.NoError(t, s.Start(timeout(t)))
	require.NoError(t, e.WaitReady(timeout(t)))
	p, _ = s.current()
	require.False(t, s.lostPort(p), "an earlier start's failure is not this one's")
}

func TestCloseLeavesNothing(t *testing.T) {
	realzk.Need(t)
	e, err := New(timeout(t), 1)
	require.NoError(t, err)
	s := e.Servers()[0]
	p, _ := s.current()
	require.NoError(t, syscall.Kill(p.os.Pid, 0))

	require.NoError(t, e.Close())
	require.ErrorIs(t, syscall.Kill(p.os.Pid, 0), syscall.ESRCH)
	require.NoDirExists(t, e.dir)
	require.NoError(t, e.Close(), "idempotent")
	require.ErrorContains(t, s.Start(timeout(t)), "closed")
}

func TestFailedTestGetsTheLogs(t *testing.T) {
	realzk.Need(t)
	fake := &fakeT{}
	e := Start(fake, 1)
	require.Empty(t, fake.fatals)
	fake.failed = true
	fake.cleanups[0]()
	require.Empty(t, fake.fatals)
	require.Len(t, fake.logs, 1)
	require.Contains(t, fake.logs[0], "server 1 ("+e.Connect()+")")
	require.Contains(t, fake.logs[0], "binding to port")
	require.NoDirExists(t, e.dir)
}

func TestStartReportsToTheTest(t *testing.T) {
	fake := &fakeT{}
	require.Nil(t, Start(fake, 2))
	require.Equal(t, []string{"ensemble: 2 servers: want 1, 3 or 5"}, fake.fatals)
}

func TestFailedStartExplainsItself(t *testing.T) {
	realzk.Need(t)
	_, err := New(timeout(t), 1, WithConfig("tickTime", "often"))
	require.ErrorIs(t, err, errDied)
	require.ErrorContains(t, err, `"often"`)
}

func TestNewStopsWithItsContext(t *testing.T) {
	realzk.Need(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := New(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)

	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = New(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCommandWantsFourLetters(t *testing.T) {
	_, err := (&Server{}).Command(timeout(t), "hello")
	require.EqualError(t, err, `ensemble: command "hello": not four letters`)
}

func TestWaitingKeepsTheReason(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	reason := errors.New("not yet")
	err := poll(ctx, func(context.Context) (bool, error) {
		if ctx.Err() != nil {
			return false, errors.New("cut short")
		}
		return false, reason
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, reason)
}

// picked returns ports that are released at the end of the test.
func picked(t *testing.T, servers int) []ports {
	t.Helper()
	all, err := pickPorts(servers)
	require.NoError(t, err)
	t.Cleanup(func() { release(all) })
	return all
}

func TestPortsDiffer(t *testing.T) {
	all := picked(t, 5)
	seen := map[int]bool{}
	for _, p := range all {
		seen[p.client.Number()], seen[p.quorum.Number()], seen[p.election.Number()] = true, true, true
	}
	require.Len(t, seen, 15)
}

func TestRetryNeedsNewPorts(t *testing.T) {
	realzk.Need(t)
	d, err := Find()
	require.NoError(t, err)
	c, err := newConfig(1, nil)
	require.NoError(t, err)
	e, err := prepare(c, d)
	require.NoError(t, err)
	thief, err := net.Listen("tcp", e.Connect())
	require.NoError(t, err)
	defer func() { _ = thief.Close() }()
	require.ErrorIs(t, e.boot(timeout(t)), errPortTaken)
	require.NoError(t, e.Close())
	_, err = os.Stat(e.dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestZooCfgOfAStandaloneServerNamesNoPeers(t *testing.T) {
	c, err := newConfig(1, []Option{WithConfig("a", "b")})
	require.NoError(t, err)
	all := picked(t, 1)
	cfg := configOf(t, c, 1, all)
	require.NotContains(t, cfg, "server.")
	require.Contains(t, cfg, "clientPort="+strconv.Itoa(all[0].client.Number())+"\n")
	require.True(t, strings.HasSuffix(cfg, "\na=b\n"), "the caller's lines win")
}

func TestConfigOfOneServerOverridesThatOfAll(t *testing.T) {
	c, err := newConfig(3, []Option{WithServerConfig(2, "a", "c"), WithConfig("a", "b"), WithServerConfig(2, "d", "e")})
	require.NoError(t, err)
	all := picked(t, 3)
	require.True(t, strings.HasSuffix(configOf(t, c, 2, all), "\na=b\na=c\nd=e\n"))
	require.True(t, strings.HasSuffix(configOf(t, c, 3, all), "\na=b\n"))
}

func configOf(t *testing.T, c config, id int, all []ports) string {
	t.Helper()
	cfg, err := zooCfg(c, id, "/data", all)
	require.NoError(t, err)
	return cfg
}

func TestLinksAreConfiguredInPlaceOfServers(t *testing.T) {
	all := picked(t, 3)
	direct := func(id int) string {
		return fmt.Sprintf("server.%d=%s:%d", id, all[id-1].quorum.Addr(), all[id-1].election.Number())
	}
	pair := func(port int) func(from, to int, addr string) string {
		return func(from, to int, _ string) string { return fmt.Sprintf("127.0.0.1:%d", port+10*from+to) }
	}
	quorum, election := WithQuorumLink(pair(100)), WithElectionLink(pair(200))
	for name, example := range map[string]struct {
		opts        []Option
		first, last string // lines of the second server
	}{
		"none":     {nil, direct(1), direct(3)},
		"quorum":   {[]Option{quorum}, fmt.Sprintf("server.1=127.0.0.1:121:%d", all[0].election.Number()), ""},
		"election": {[]Option{election}, "", fmt.Sprintf("server.3=%s:223", all[2].quorum.Addr())},
		"both":     {[]Option{quorum, election}, "server.1=127.0.0.1:121:221", "server.3=127.0.0.1:123:223"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newConfig(3, example.opts)
			require.NoError(t, err)
			lines := strings.Split(configOf(t, c, 2, all), "\n")
			require.Subset(t, lines, []string{example.first, direct(2), example.last})
		})
	}
	for name, address := range map[string]string{"another host": "127.0.0.2:7", "no port": "127.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			c, err := newConfig(3, []Option{quorum, WithElectionLink(func(int, int, string) string { return address })})
			require.NoError(t, err)
			_, err = zooCfg(c, 2, "/data", all)
			require.ErrorContains(t, err, "link")
		})
	}
}
