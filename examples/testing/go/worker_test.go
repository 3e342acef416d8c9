package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

const sessionTimeout = 10 * time.Second

func connect(t *testing.T, srv *zktest.Server, name string) *zk.Conn {
	t.Helper()
	dial := zk.WithDialer(srv.Client(name).Dialer())
	conn, _, err := zk.Connect([]string{srv.MemAddr()}, sessionTimeout, dial, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestNodeOfAWorkerThatIsCutOffIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes only while all goroutines wait
		srv := zktest.Start(t)
		worker := connect(t, srv, "worker")
		if _, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}

		srv.Client("worker").Cut()
		time.Sleep(2 * sessionTimeout) // takes no time

		if srv.Exists("/worker") {
			t.Errorf("the node is still there:\n%v", srv.Tree())
		}
	})
}

func TestNodeOfAWorkerOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		worker := connect(t, srv, "worker")
		if _, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}

		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * sessionTimeout)

		if !srv.Exists("/worker") {
			t.Errorf("the node was deleted:\n%v", srv.Trace())
		}
	})
}

func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		worker := connect(t, srv, "worker")
		lost := srv.On(fault.Match{Client: "worker", Op: fault.OpCreate}, fault.DropAfter())

		_, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))

		if lost.Hits() != 1 || err == nil || !srv.Exists("/worker") {
			t.Errorf("want an error and a node, got %v and\n%v", err, srv.Tree())
		}
	})
}
