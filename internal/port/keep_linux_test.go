package port

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlySocketsThatNameAKeptPortGetIt(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	exclusive := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
		})
	}}
	_, err = exclusive.Listen(t.Context(), "tcp4", p.Addr())
	require.ErrorIs(t, err, syscall.EADDRINUSE, "the port is bound")
	l, err := net.Listen("tcp4", p.Addr())
	require.NoError(t, err, "a server that sets SO_REUSEADDR")
	require.NoError(t, l.Close())
	p.Close()
	l, err = exclusive.Listen(t.Context(), "tcp4", p.Addr())
	require.NoError(t, err, "the port was released")
	require.NoError(t, l.Close())
}
