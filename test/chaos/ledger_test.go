package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// ledgers find out whether the servers have lost a transaction that they had acknowledged. docent
// assumes that they do not. ZooKeeper 3.8.0 does, seldom: a follower that loses the leader while they
// synchronize can be elected in the new epoch without the transactions of the old one, and then has the
// others forget them (ZOOKEEPER-4643). One that had a snapshot with them keeps them. Then the servers
// have different nodes.
//
// There is a ledger for each server, because a connection to another one may be cut when its server
// acknowledges the last transactions. They use the plain driver, so that they tell nothing of docent.
type ledgers []*ledger

// ledger is a node that one connection changes.
type ledger struct {
	path string
	conn *zk.Conn

	mu      sync.Mutex
	version int32 // the largest that was acknowledged; -1 before the first
	lost    error
}

func newLedgers(t *testing.T, addrs ...string) (all ledgers) {
	for n, addr := range addrs {
		all = append(all, &ledger{path: fmt.Sprintf("/ledger-%d", n+1), conn: observe(t, addr), version: -1})
	}
	return all
}

// run changes all ledgers until over is closed.
func (all ledgers) run(over <-chan struct{}) {
	var running sync.WaitGroup
	for _, l := range all {
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(50 * time.Millisecond): // the workload
					_ = l.change()
				}
			}
		})
	}
	running.Wait()
}

// change creates the node or changes it once. It fails if the change was not acknowledged.
func (l *ledger) change() error {
	stat, err := l.conn.Set(l.path, nil, -1)
	if !errors.Is(err, zk.ErrNoNode) {
		if err == nil {
			l.acknowledged(stat.Version)
		}
		return err
	}
	if l.isCreated() {
		l.acknowledged(-1)
	}
	if _, err = l.conn.Create(l.path, nil, 0, zk.WorldACL(zk.PermAll)); err == nil {
		l.acknowledged(0)
	}
	return err
}

func (l *ledger) isCreated() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version >= 0
}

// acknowledged notes a version. Each is larger than those before, unless some of them were lost.
func (l *ledger) acknowledged(version int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version <= l.version && l.lost == nil {
		l.lost = fmt.Errorf("%s had version %d, and got version %d then", l.path, l.version, version)
	}
	l.version = version
}

// errDifferent is an error of compare and mismatch.
var errDifferent = errors.New("the servers have different nodes")

// compare compares what the servers have below some paths, until it is the same or for a while. Only the
// ends of sessions change it meanwhile.
func (all ledgers) compare(patience time.Duration, paths ...string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := all.difference(paths...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (all ledgers) difference(paths ...string) error {
	var first map[string]int64
	for n, l := range all {
		nodes, err := l.read(paths...)
		if err != nil {
			return err
		}
		if n == 0 {
			first = nodes
		}
		if !maps.Equal(first, nodes) {
			return fmt.Errorf("%w: server 1 %#x, server %d %#x", errDifferent, first, n+1, nodes)
		}
	}
	return nil
}

// read returns the last transaction of each node below some paths, as the server has it.
func (l *ledger) read(paths ...string) (map[string]int64, error) {
	tree := map[string]nodeOnServer{}
	err := testzk.Sync(l.conn)
	for _, path := range paths {
		err = errors.Join(err, readTree(l.conn, path, tree))
	}
	nodes := map[string]int64{}
	for node, found := range tree {
		nodes[node] = found.stat.Mzxid
	}
	return nodes, err
}

// mismatch returns an error if a server has found, by a digest, that its nodes are not those of the leader.
// It may have got the right ones since.
func mismatch(writeLogs func(w io.Writer, lines int)) error {
	var logs strings.Builder
	writeLogs(&logs, math.MaxInt32)
	if strings.Contains(logs.String(), "digest mismatch") {
		return fmt.Errorf("%w: a digest does not match", errDifferent)
	}
	return nil
}

// losses returns what was lost.
func (all ledgers) losses() (err error) {
	for _, l := range all {
		l.mu.Lock()
		err = errors.Join(err, l.lost)
		l.mu.Unlock()
	}
	return err
}

// check changes all ledgers once more, and returns what was lost. Faults are over.
func (all ledgers) check(t *testing.T) error {
	for _, l := range all {
		var err error
		eventually(t, func() bool {
			err = l.change()
			return err == nil
		}, func() string { return fmt.Sprintf("%s cannot be changed: %v", l.path, err) })
	}
	return all.losses()
}

func TestLedgerFindsLostTransactions(t *testing.T) {
	server := zktest.Start(t)
	all := newLedgers(t, server.Addr(), server.Addr())
	other := observe(t, server.Addr())
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		all.run(over)
		close(stopped)
	}()
	testzk.Eventually(t, func() bool {
		_, stat, _ := other.Get(all[1].path)
		return stat != nil && stat.Version > 2
	}, "the ledger is not changed")
	close(over)
	<-stopped
	require.NoError(t, all.check(t))

	_, err := other.Set(all[0].path, nil, -1) // as if an attempt of unknown outcome had been applied
	require.NoError(t, err)
	require.NoError(t, all.check(t))

	require.NoError(t, other.Delete(all[0].path, -1))
	require.ErrorContains(t, all.check(t), "/ledger-1 had version")
	all[0].lost = nil
	require.NoError(t, all.check(t))
	require.NoError(t, all.compare(time.Minute, "/ledger-1", "/ledger-2", "/none"))
	another := zktest.Start(t)
	divided := append(all, newLedgers(t, another.Addr())...)
	err = divided.compare(time.Millisecond, "/ledger-1")
	require.ErrorIs(t, err, errDifferent)
	require.ErrorContains(t, err, "server 3 map[]")
	all[1].version += 2
	require.ErrorContains(t, all.check(t), "/ledger-2 had version")
}
