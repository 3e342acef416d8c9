package wire

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mute grants a session to the first who asks, and then says nothing more; it obeys all others.
func mute(id int64, timeout time.Duration) func(*peer) {
	return func(p *peer) {
		if p.number > 0 {
			p.obey(id, timeout)
			return
		}
		p.welcome(id, timeout)
		for _, ok := p.read(); ok; _, ok = p.read() {
		}
	}
}

func TestServerThatFallsSilentIsLeftWhileTheSessionCanStillBeReliedOn(t *testing.T) {
	t.Parallel()
	const timeout = 9 * time.Second
	s := serve(t, mute(7, timeout))
	_, port, err := net.SplitHostPort(s.addr())
	require.NoError(t, err)
	c := connect(t, Config{SessionTimeout: timeout}, s.addr(), net.JoinHostPort("localhost", port)) // as if they were two
	c.awaitSession(t, 7)
	proven := c.Proven()
	eventually(t, func() bool { return c.Proven().After(proven) }, "the client stays where nobody answers")
	require.Equal(t, 2, s.accepted())
	require.Less(t, proven.Elapsed(), timeout*2/3)
}

func TestOnlyServerMayTakeItsTime(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	s := serve(t, mute(7, timeout))
	c := connect(t, Config{SessionTimeout: timeout}, s.addr())
	c.awaitSession(t, 7)
	proven := c.Proven()
	eventually(t, func() bool { return s.accepted() == 2 }, "the driver's own limit does not hold")
	require.Greater(t, proven.Elapsed(), timeout/2, "there is no other server to go to")
}
