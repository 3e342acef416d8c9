package zktest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

func TestWatchesInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a := joinAs(t, srv.Client("a"), srv.MemAddr(), 40*time.Second)
		b := joinAs(t, srv.Client("b"), srv.MemAddr(), 40*time.Second)
		makeNode(t, a, "/a", 0)
		for _, conn := range []*zk.Conn{a, b} {
			_, _, _, err := conn.GetW("/a")
			require.NoError(t, err)
		}
		_, _, _, err := a.ExistsW("/nope")
		require.NoError(t, err)
		_, _, _, err = b.ChildrenW("/") // which the words do not show
		require.NoError(t, err)
		first, second := uint64(a.SessionID()), uint64(b.SessionID())
		assert.Equal(t, "2 connections watching 2 paths\nTotal watches:3\n", commandOf(t, srv, "wchs"))
		assert.Equal(t, fmt.Sprintf("/a\n\t0x%x\n\t0x%x\n/nope\n\t0x%x\n\n", first, second, first),
			commandOf(t, srv, "wchp"))
		assert.Equal(t, fmt.Sprintf("0x%x\n\t/a\n\t/nope\n0x%x\n\t/a\n\n", first, second), commandOf(t, srv, "wchc"))
	})
}

func TestDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithTick(500*time.Millisecond))
		born := time.Now()
		a := joinAs(t, srv.Client("a"), srv.MemAddr(), 10*time.Second)
		b := joinAs(t, srv.Client("b"), srv.MemAddr(), 20*time.Second)
		c := joinAs(t, srv.Client("c"), srv.MemAddr(), 20*time.Second)
		for path, conn := range map[string]*zk.Conn{"/e1": a, "/e2": a, "/e3": b} {
			makeNode(t, conn, path, zk.FlagEphemeral)
		}
		at := func(d time.Duration) string { return born.Add(d).Format("Mon Jan 02 15:04:05 MST 2006") }
		dump := strings.NewReplacer(
			fmt.Sprintf("0x%x", uint64(a.SessionID())), "A", fmt.Sprintf("0x%x", uint64(b.SessionID())), "B",
			fmt.Sprintf("0x%x", uint64(c.SessionID())), "C",
			at(10*time.Second), "<10s>", at(20*time.Second), "<20s>",
			at(30*time.Second), "<30s>",
		).Replace(sayWord(t, srv, srv.MemAddr(), "dump"))
		dump = regexp.MustCompile(`127\.0\.1\.\d:\d+`).ReplaceAllString(dump, "<addr>")
		assert.Equal(t, `SessionTracker dump:
Session Sets (2)/(3):
1 expire at <10s>:
	A
2 expire at <20s>:
	B
	C
ephemeral nodes dump:
Sessions with Ephemerals (2):
A:
	/e1
	/e2
B:
	/e3
Connections dump:
Connections Sets (2)/(4):
2 expire at <20s>:
	ip: /<addr> sessionId: A
	ip: /<addr> sessionId: 0x0
2 expire at <30s>:
	ip: /<addr> sessionId: B
	ip: /<addr> sessionId: C
`, dump)
	})
}

func TestConfiguration(t *testing.T) {
	srv := zktest.Start(t, zktest.WithTick(time.Second), zktest.WithSessionTimeouts(2*time.Second, 30*time.Second),
		zktest.WithConfig("maxClientCnxns", "60"))
	_, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	want := "clientPort=" + port + `
secureClientPort=-1
dataDir=
dataDirSize=0
dataLogDir=
dataLogSize=0
tickTime=1000
maxClientCnxns=60
minSessionTimeout=2000
maxSessionTimeout=30000
clientPortListenBacklog=-1
serverId=0
`
	assert.Equal(t, want, commandOf(t, srv, "conf"))
	nc, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	_, err = io.WriteString(nc, "conf")
	require.NoError(t, err)
	assert.Equal(t, want, readToEnd(t, nc))
}

func TestEnvironment(t *testing.T) {
	envi := commandOf(t, zktest.Start(t), "envi")
	assert.Equal(t, []string{
		"Environment:", "zookeeper.version", "host.name",
		"java.version", "java.vendor", "java.home", "java.class.path", "java.library.path", "java.io.tmpdir",
		"java.compiler", "os.name", "os.arch", "os.version", "user.name", "user.home", "user.dir",
		"os.memory.free", "os.memory.max", "os.memory.total", "",
	}, strings.Split(regexp.MustCompile(`(?m)=.*$`).ReplaceAllString(envi, ""), "\n"))
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Contains(t, envi, "\nhost.name="+host+"\n")
}
