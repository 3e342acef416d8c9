package rawzk_test

import (
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestMessagesAreThoseOfTheProtocol(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{
			rawzk.Connect{Timeout: 4000, Password: make([]byte, 16), ReadOnly: []byte{0}}.Encode(),
			"00000000 0000000000000000 00000fa0 0000000000000000 00000010" + strings.Repeat("00", 16) + "00",
		},
		{rawzk.Request(-2, rawzk.Ping()), "fffffffe 0000000b"},
		{
			rawzk.Request(-4, rawzk.Auth("digest", []byte("u:p"))),
			"fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70",
		},
		{rawzk.Multi().Body, "ffffffff 01 ffffffff"},
		{rawzk.Multi(rawzk.Check("/a", 3)).Body, "0000000d 00 ffffffff 00000002 2f61 00000003 ffffffff 01 ffffffff"},
		{
			rawzk.Join(rawzk.Buf(nil), rawzk.Buf([]byte{}), rawzk.Strs(nil), rawzk.ACLs(nil)),
			"ffffffff 00000000 ffffffff ffffffff",
		},
	} {
		require.Equal(t, strings.ReplaceAll(c.want, " ", ""), hex.EncodeToString(c.got))
	}
}

func TestDecodingStopsAtTheFirstError(t *testing.T) {
	d := rawzk.Decode(rawzk.Join(rawzk.Int(7), rawzk.Int(100), []byte("short")))
	require.EqualValues(t, 7, d.Int())
	require.Empty(t, d.Str())
	require.Error(t, d.Err())
	require.Zero(t, d.Long())
	require.Equal(t, "short", string(d.Rest()))
	d = rawzk.Decode(rawzk.Int(1 << 30))
	require.Nil(t, d.Strs())
	require.ErrorContains(t, d.Err(), "1073741824")
}

// A frame that arrived before the end of the connection is not lost.
func TestEndingsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(*rawzk.Conn) error
		want    error
		timeout time.Duration
	}{
		"closed": {(*rawzk.Conn).Close, rawzk.ErrClosed, time.Minute},
		"half":   {(*rawzk.Conn).CloseWrite, rawzk.ErrClosed, time.Minute},
		"reset":  {(*rawzk.Conn).Reset, rawzk.ErrReset, time.Minute},
		"silent": {func(*rawzk.Conn) error { return nil }, rawzk.ErrTimeout, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := connected(t)
			require.NoError(t, there.SendFrame([]byte("hello")))
			frame, err := here.ReadFrame(time.Minute)
			require.NoError(t, err)
			require.Equal(t, "hello", string(frame))
			require.NoError(t, c.end(there))
			_, err = here.ReadFrame(c.timeout)
			require.Equal(t, c.want, err)
		})
	}
}

func TestEndInTheMiddleOfAFrameIsAnError(t *testing.T) {
	here, there := connected(t)
	require.NoError(t, there.SendBytes([]byte{0, 0, 0, 9, 1, 2}))
	require.NoError(t, there.Close())
	_, err := here.ReadFrame(time.Minute)
	require.ErrorIs(t, err, rawzk.ErrClosed)
	require.False(t, err == rawzk.ErrClosed)
	require.ErrorContains(t, err, "after 6 bytes")
}

// connected returns the two ends of a connection.
func connected(t *testing.T) (here, there *rawzk.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	here, err = rawzk.Dial(listener.Addr().String())
	require.NoError(t, err)
	accepted, err := listener.Accept()
	require.NoError(t, err)
	there = rawzk.NewConn(accepted)
	t.Cleanup(func() {
		for _, end := range []*rawzk.Conn{here, there} {
			if err := end.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	})
	return here, there
}
