package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Requests that are sent together come back together, after one round trip. One after another they would
// take one round trip each, far longer than a busy machine takes.
func TestLinkDelaysEachByteAlike(t *testing.T) {
	const trip, requests = 100 * time.Millisecond, 100
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := echo.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	l, err := newLink(echo.Addr().String(), trip)
	require.NoError(t, err)
	c, err := net.Dial("tcp", l.addr())
	require.NoError(t, err)
	fastest := time.Hour
	for range 3 {
		began := time.Now()
		for range requests {
			_, err = c.Write([]byte("x"))
			require.NoError(t, err)
		}
		_, err = io.ReadFull(c, make([]byte, requests))
		require.NoError(t, err)
		took := time.Since(began)
		require.GreaterOrEqual(t, took, trip)
		fastest = min(fastest, took)
	}
	require.Less(t, fastest, requests/2*trip)
	require.NoError(t, c.Close())
	l.close()
	l.close()
	require.NoError(t, echo.Close())
	<-served
}
