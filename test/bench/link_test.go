package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two requests that are sent together come back together, after one round trip.
func TestLinkDelaysEachByteAlike(t *testing.T) {
	const trip = 100 * time.Millisecond
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
	for range 5 { // a busy machine delays some
		began := time.Now()
		for range 3 {
			_, err = c.Write([]byte("x"))
			require.NoError(t, err)
		}
		_, err = io.ReadFull(c, make([]byte, 3))
		require.NoError(t, err)
		took := time.Since(began)
		require.GreaterOrEqual(t, took, trip)
		fastest = min(fastest, took)
	}
	require.Less(t, fastest, 2*trip)
	require.NoError(t, c.Close())
	l.close()
	l.close()
	require.NoError(t, echo.Close())
	<-served
}
