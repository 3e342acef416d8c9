package chaos

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pace is how fast a way is. The zero pace is that of the machine.
type pace struct {
	delay time.Duration // of each chunk, so that what is sent meanwhile waits, too
	rate  int           // bytes in a second; 0: any number
}

// String returns a description for messages.
func (p pace) String() string {
	if p.rate > 0 {
		return fmt.Sprintf("%d bytes in a second", p.rate)
	}
	return fmt.Sprintf("%v later", p.delay.Round(time.Millisecond))
}

// slow sets the pace of a way.
func (w *way) slow(p pace) { w.set(func() { w.pace, w.slowed = p, false }) }

func (w *way) current() pace {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pace
}

// slow sets the pace of both directions.
func (r *relay) slow(p pace) {
	r.up.slow(p)
	r.down.slow(p)
}

// limit returns the part of a buffer that takes at most a tenth of a second to fill.
func (p pace) limit(buffer []byte) []byte {
	if p.rate == 0 {
		return buffer
	}
	return buffer[:min(len(buffer), 1+p.rate/10)]
}

// wait waits for the time that n bytes take, or until left is closed. It reports whether bytes took
// longer than they do on the machine.
func (p pace) wait(n int, left <-chan struct{}) (slow bool) {
	d := p.delay
	if p.rate > 0 {
		d += time.Duration(n) * time.Second / time.Duration(p.rate)
	}
	if d == 0 {
		return false
	}
	select {
	case <-time.After(d): // the slowness of the link
	case <-left:
	}
	return n > 0
}

// echo returns the address of a listener that sends back what it gets, until the test ends.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				buffer := make([]byte, 1024)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					_, _ = conn.Write(buffer[:n])
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestSlowLinkTakesItsTimeAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]pace{"delay": {delay: 50 * time.Millisecond}, "rate": {rate: 200_000}} {
		t.Run(name, func(t *testing.T) {
			r := newNetwork(t).relay(echo(t))
			r.slow(p)
			conn, err := net.Dial("tcp", r.addr())
			require.NoError(t, err)
			defer conn.Close()
			sent := make([]byte, 10_000)
			for i := range sent {
				sent[i] = byte(i % 251)
			}
			begun := time.Now()
			_, err = conn.Write(sent)
			require.NoError(t, err)
			got := make([]byte, 0, len(sent))
			for buffer := make([]byte, 4096); len(got) < len(sent); {
				n, err := conn.Read(buffer)
				require.NoError(t, err)
				got = append(got, buffer[:n]...)
			}
			require.Equal(t, sent, got)
			require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond, "the link is not slow")
		})
	}
}

func TestResetLinkEndsConnectionsWithAnError(t *testing.T) {
	t.Parallel()
	r := newNetwork(t).relay(echo(t))
	conn, err := net.Dial("tcp", r.addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	require.NoError(t, err)
	buffer := make([]byte, 1)
	_, err = conn.Read(buffer)
	require.NoError(t, err)
	r.reset()
	_, err = conn.Read(buffer)
	require.ErrorContains(t, err, "reset")
}
