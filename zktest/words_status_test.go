package zktest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// srvrText is the answer to srvr, without its first line, of a server with a session that has
// created a node.
const srvrText = `Latency min/avg/max: 0/0.0/0
Received: 4
Sent: 3
Connections: 2
Outstanding: 0
Zxid: 0x2
Mode: standalone
Node count: 6
`

func TestStatus(t *testing.T) {
	for compat, title := range map[zktest.Compat]string{zktest.V38: "3.8.0", zktest.V39: "3.9.5"} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.WithCompat(compat))
			conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 10*time.Second)
			makeNode(t, conn, "/a", 0)
			_, _, err := conn.Get("/a")
			require.NoError(t, err)
			version := "Zookeeper version: " + title + "-docent, built on 1970-01-01 00:00 UTC\n"
			assert.Equal(t, version+srvrText, sayWord(t, srv, srv.MemAddr(), "srvr"))
			clients := regexp.MustCompile(
				`(?m)^Clients:\n( /127\.0\.1\.\d:\d+\[[01]\]\(queued=0,recved=\d,sent=\d\)\n){2}\n`)
			stat := sayWord(t, srv, srv.MemAddr(), "stat")
			assert.Regexp(t, clients, stat)
			assert.Contains(t, stat, "[1](queued=0,recved=3,sent=3)\n")
			assert.Contains(t, stat, "[0](queued=0,recved=1,sent=0)\n")
			counted := strings.NewReplacer("Received: 4", "Received: 5", "Sent: 3", "Sent: 4").Replace(srvrText)
			assert.Equal(t, version+counted, clients.ReplaceAllString(stat, ""))
		})
	}
}

func TestResetsOfTheCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		makeNode(t, joinAs(t, srv.Client("a"), srv.MemAddr(), 10*time.Second), "/a", 0)
		require.Equal(t, "Connection stats reset.\n", sayWord(t, srv, srv.MemAddr(), "crst"))
		cons := commandOf(t, srv, "cons")
		assert.Contains(t, cons, "(queued=0,recved=0,sent=0,")
		assert.Contains(t, cons, ",lop=NA,est=")
		assert.Contains(t, cons, ",to=10000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)")
		assert.Contains(t, sayWord(t, srv, srv.MemAddr(), "srvr"), "\nReceived: 5\nSent: 4\n",
			"the server's own counts stay")
	})
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Delay(4*time.Millisecond))
		makeNode(t, joinAs(t, srv.Client("a"), srv.MemAddr(), 10*time.Second), "/a", 0)
		require.Contains(t, commandOf(t, srv, "srvr"), "\nLatency min/avg/max: 0/2.0/4\n")
		require.Equal(t, "Server stats reset.\n", sayWord(t, srv, srv.MemAddr(), "srst"))
		assert.Contains(t, sayWord(t, srv, srv.MemAddr(), "srvr"),
			"\nLatency min/avg/max: 0/0.0/0\nReceived: 1\nSent: 1\n")
		assert.Contains(t, commandOf(t, srv, "cons"), "(queued=0,recved=2,sent=2,", "the connections' own counts stay")
	})
}

func TestConnectionsThatHaveEndedAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("a")
		joinAs(t, client, srv.MemAddr(), 40*time.Second)
		require.Contains(t, commandOf(t, srv, "srvr"), "\nConnections: 1\n")
		client.CutReplies() // so that the client does not see the end
		client.Drop()
		assert.Contains(t, commandOf(t, srv, "srvr"), "\nConnections: 0\n")
		assert.Equal(t, "\n", commandOf(t, srv, "cons"))
		client.Heal()
	})
}

func TestCountersOutliveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 10*time.Second)
		conn.Close()
		synctest.Wait()
		assert.Contains(t, sayWord(t, srv, srv.MemAddr(), "srvr"), "\nReceived: 3\nSent: 2\nConnections: 1\n")
		require.NoError(t, srv.Restart())
		assert.Contains(t, sayWord(t, srv, srv.MemAddr(), "srvr"), "\nReceived: 1\nSent: 0\nConnections: 1\n")
	})
}

func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		born := time.Now().UnixMilli()
		time.Sleep(time.Second)
		conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 40*time.Second)
		id, remote := uint64(conn.SessionID()), `127\.0\.1\.1:\d+`
		expect := func(lop, counts, last string) {
			t.Helper()
			assert.Regexp(t, fmt.Sprintf(`^ /%s\[1\]\(queued=0,%s,sid=0x%x,lop=%s,est=%d,to=40000,%s\)\n\n$`,
				remote, counts, id, lop, born+1000, last), commandOf(t, srv, "cons"))
		}
		expect("SESS", "recved=1,sent=1", "lcxid=0x0,lzxid=0x1,lresp=1000,llat=0,minlat=0,avglat=0,maxlat=0")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Delay(9*time.Millisecond))
		makeNode(t, conn, "/a", 0)
		expect("CREA", "recved=2,sent=2", "lcxid=0x1,lzxid=0x2,lresp=1009,llat=9,minlat=0,avglat=4,maxlat=9")
		require.NoError(t, conn.AddAuth("digest", []byte("me:secret")))
		expect("CREA", "recved=3,sent=3", "lcxid=0x1,lzxid=0x2,lresp=1009,llat=9,minlat=0,avglat=4,maxlat=9")
		_, _, err := conn.Children("/a")
		require.NoError(t, err)
		expect("GETC", "recved=4,sent=4", "lcxid=0x[23],lzxid=0x2,lresp=1009,llat=0,minlat=0,avglat=3,maxlat=9")
		assert.Contains(t, commandOf(t, srv, "srvr"), "\nLatency min/avg/max: 0/3.0/9\n")
		_, _, err = conn.Exists("/")
		require.NoError(t, err)
		assert.Contains(t, commandOf(t, srv, "srvr"), "\nLatency min/avg/max: 0/2.25/9\n")
	})
}

func TestConnectionThatGoesOnWithASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("a")
		conn := joinAs(t, client, srv.MemAddr(), 40*time.Second)
		client.Drop()
		time.Sleep(5 * time.Second)
		require.Equal(t, zk.StateHasSession, conn.State())
		assert.Contains(t, commandOf(t, srv, "cons"), "(queued=0,recved=1,sent=1,sid=")
		assert.Contains(t, commandOf(t, srv, "cons"), ",lop=null,")
	})
}

func TestPingsKeepTheLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 9*time.Second)
		makeNode(t, conn, "/a", 0)
		ping := srv.On(fault.Match{Op: fault.OpPing}, fault.Pass())
		require.NoError(t, ping.Wait(t.Context()))
		synctest.Wait()
		assert.Regexp(t, `recved=3,sent=3,sid=0x[0-9a-f]+,lop=PING,est=\d+,to=9000,lcxid=0x1,lzxid=0x2,`,
			commandOf(t, srv, "cons"))
	})
}

func TestOutstandingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 40*time.Second)
		held := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		done := make(chan error, 1)
		go func() {
			_, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
			done <- err
		}()
		require.NoError(t, held.Wait(context.Background()))
		assert.Contains(t, commandOf(t, srv, "srvr"), "\nOutstanding: 1\n")
		assert.Contains(t, commandOf(t, srv, "mntr"), "\nzk_outstanding_requests\t1\n")
		assert.Contains(t, commandOf(t, srv, "cons"), "(queued=1,recved=2,sent=1,")
		require.Equal(t, "Connection stats reset.\n", commandOf(t, srv, "crst"))
		assert.Contains(t, commandOf(t, srv, "cons"), "(queued=1,recved=0,sent=0,")
		held.Release()
		require.NoError(t, <-done)
		assert.Contains(t, commandOf(t, srv, "srvr"), "\nOutstanding: 0\n")
		assert.Contains(t, commandOf(t, srv, "cons"), "(queued=0,recved=0,sent=1,")
	})
}

func TestMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := joinAs(t, srv.Client("a"), srv.MemAddr(), 40*time.Second)
		makeNode(t, conn, "/a", 0)
		makeNode(t, conn, "/e", zk.FlagEphemeral)
		_, _, _, err := conn.GetW("/a")
		require.NoError(t, err)
		_, _, _, err = conn.ChildrenW("/a")
		require.NoError(t, err)
		time.Sleep(1500 * time.Millisecond)
		assert.Equal(t, strings.Join([]string{
			"zk_version\t3.9.5-docent, built on 1970-01-01 00:00 UTC", "zk_server_state\tstandalone",
			"zk_ephemerals_count\t1", "zk_num_alive_connections\t2", "zk_avg_latency\t0.0",
			"zk_outstanding_requests\t0", "zk_znode_count\t7", "zk_global_sessions\t1", "zk_packets_sent\t5",
			"zk_packets_received\t6", "zk_watch_count\t2", "zk_min_latency\t0",
			"zk_max_file_descriptor_count\t-1", "zk_approximate_data_size\t50",
			"zk_open_file_descriptor_count\t-1", "zk_local_sessions\t0", "zk_uptime\t1500", "zk_max_latency\t0", "",
		}, "\n"), sayWord(t, srv, srv.MemAddr(), "mntr"))
	})
}
