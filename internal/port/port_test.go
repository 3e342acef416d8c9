package port

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortIsListenedOnAgainAndAgain(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	defer p.Close()
	for range 3 {
		_, err := net.Dial("tcp", p.Addr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		l, err := p.Listen()
		require.NoError(t, err)
		conn, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, l.Close())
	}
}
