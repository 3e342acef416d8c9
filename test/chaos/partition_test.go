package chaos

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// A follower that is cut off from the leader answers reads and pings by itself for as long as syncLimit ticks, while the leader expires
// the sessions of its clients.
func TestHoldEndsInTimeWhenItsServerIsCutOffFromTheLeader(t *testing.T) {
	realzk.Need(t)
	links := newLinks(t)
	e := ensemble.Start(t, 3, ensemble.WithTick(time.Second), ensemble.WithConfig("syncLimit=20"), ensemble.WithQuorumLink(links.between))
	leader, err := e.Leader(testzk.Context(t))
	require.NoError(t, err)
	follower := e.Servers()[0]
	if follower == leader {
		follower = e.Servers()[1]
	}
	holders := testzk.Connected(t, follower.Addr(), testzk.Mortal())
	other := testzk.Connected(t, leader.Addr())
	first, err := mutex.New(holders, lockPath)
	require.NoError(t, err)
	second, err := mutex.New(other, lockPath)
	require.NoError(t, err)
	held, err := first.Acquire(testzk.Context(t))
	require.NoError(t, err)

	links.cut(follower.ID(), leader.ID())
	next, err := second.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.ErrorIs(t, held.Err(), framework.ErrSessionLost, "two valid holds at a time; the first until %v", held.ValidUntil())
	require.Greater(t, next.Token(), held.Token())
	require.NoError(t, next.Release())
}

// links are the connections between servers, each of which can be cut without a word.
type links struct {
	t       *testing.T
	running sync.WaitGroup

	mu    sync.Mutex
	state map[[2]int]*atomic.Bool // true: cut
	open  []io.Closer
}

func newLinks(t *testing.T) *links {
	l := &links{t: t, state: map[[2]int]*atomic.Bool{}}
	t.Cleanup(l.close)
	return l
}

func (l *links) close() {
	l.mu.Lock()
	for _, c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}

func (l *links) keep(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
}

// between is for ensemble.WithQuorumLink.
func (l *links) between(from, to int, addr string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l.t, err)
	l.keep(listener)
	cut := &atomic.Bool{}
	l.mu.Lock()
	l.state[[2]int{from, to}] = cut
	l.mu.Unlock()
	l.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.join(conn, addr, cut)
		}
	})
	return listener.Addr().String()
}

func (l *links) join(conn net.Conn, addr string, cut *atomic.Bool) {
	l.keep(conn)
	server, err := net.Dial("tcp", addr)
	if err != nil {
		conn.Close()
		return
	}
	l.keep(server)
	l.running.Go(func() { pump(conn, server, cut) })
	l.running.Go(func() { pump(server, conn, cut) })
}

// pump passes on what it reads, or swallows it.
func pump(from, to net.Conn, cut *atomic.Bool) {
	defer to.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if n > 0 && !cut.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *links) cut(from, to int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state[[2]int{from, to}].Store(true)
}
