package service

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// echo answers each line with itself.
func echo(t *testing.T) (addr string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(c); lines.Scan(); {
				fmt.Fprintln(c, lines.Text())
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func connect(t *testing.T) (*Link, net.Conn, *bufio.Scanner) {
	addr := echo(t)
	l, err := NewLink(func() string { return addr })
	require.NoError(t, err)
	t.Cleanup(l.Close)
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return l, c, bufio.NewScanner(c)
}

func say(t *testing.T, c net.Conn, line string) {
	_, err := fmt.Fprintln(c, line)
	require.NoError(t, err)
}

func TestCutLinkHoldsBackAndDelivers(t *testing.T) {
	l, c, lines := connect(t)
	say(t, c, "one")
	require.True(t, lines.Scan())
	l.Cut(true)
	before := l.Sent()
	say(t, c, "two")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err, "an answer through a link that is cut")
	require.Equal(t, before, l.Sent())
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	l.Cut(false)
	require.True(t, lines.Scan())
	require.Equal(t, "two", lines.Text())
}

func TestRequestsArriveWhileRepliesAreHeldBack(t *testing.T) {
	l, c, _ := connect(t)
	l.HoldReplies()
	say(t, c, "one")
	require.Eventually(t, func() bool { return l.Sent() == 4 }, time.Minute, time.Millisecond)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
}
