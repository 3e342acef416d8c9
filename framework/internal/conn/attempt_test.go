package conn

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeOfAnAttemptToConnect(t *testing.T) {
	const requested, granted = time.Minute, 24 * time.Second
	for name, row := range map[string]struct {
		servers int
		limit   time.Duration // of the configuration
		granted time.Duration // 0: there is no session yet
		took    time.Duration
		round   int
		want    time.Duration
	}{
		"no session, one server":      {servers: 1, want: 20 * time.Second},
		"no session, several servers": {servers: 4, want: 20 * time.Second},
		"no session, a short limit":   {servers: 4, limit: time.Second, want: time.Second},
		"one server":                  {servers: 1, granted: granted, want: 8 * time.Second},
		"several servers":             {servers: 3, granted: granted, want: 2 * time.Second},
		"several, short limit":        {servers: 3, granted: granted, limit: time.Second, want: time.Second},
		"several, short timeout":      {servers: 3, granted: 3 * time.Second, want: minAttemptTimeout},
		"several, slow network":       {servers: 3, granted: granted, took: 3 * time.Second, want: 6 * time.Second},
		"several, slower network":     {servers: 3, granted: granted, took: 5 * time.Second, want: 8 * time.Second},
		"several, the second round":   {servers: 3, granted: granted, round: 1, want: 8 * time.Second},
	} {
		var servers []string
		for n := range row.servers {
			servers = append(servers, fmt.Sprintf("s%d:1", n))
		}
		c := unstarted(servers...)
		c.cfg.SessionTimeout, c.cfg.ConnectTimeout = requested, cmp.Or(row.limit, time.Hour)
		c.info.Timeout, c.took = row.granted, row.took
		for range 1 + row.round*row.servers {
			c.hosts.next()
		}
		require.Equal(t, row.want, c.attemptTimeout(), name)
	}
}

// A caller would take the error of an internal context for that of its own.
func TestFailureOfAServerIsNoErrorOfAContext(t *testing.T) {
	for _, failure := range []error{context.DeadlineExceeded, context.Canceled} {
		c := unstarted("a:1")
		c.noteFailure("a:1", fmt.Errorf("dial: %w", failure))
		require.EqualError(t, c.Failures(), "a:1: dial: "+failure.Error())
		require.NotErrorIs(t, c.Failures(), failure)
		c.noteFailure("a:1", &net.AddrError{Err: "refused"})
		var kept *net.AddrError
		require.ErrorAs(t, c.Failures(), &kept)
	}
}

func TestFailureOfARemovedServerIsForgotten(t *testing.T) {
	c := unstarted("a:1", "b:1")
	c.noteFailure("a:1", net.ErrClosed)
	c.noteFailure("b:1", net.ErrClosed)
	c.SetServers([]string{"b:1", "c:1"})
	require.EqualError(t, c.Failures(), "b:1: "+net.ErrClosed.Error())
	c.noteFailure("a:1", net.ErrClosed)
	require.EqualError(t, c.Failures(), "b:1: "+net.ErrClosed.Error())
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.True(t, sleep(ctx, 0))
		require.True(t, sleep(ctx, -time.Second))
		require.Zero(t, time.Since(began))
		require.True(t, sleep(ctx, time.Second/2))
		require.Equal(t, time.Second/2, time.Since(began))
		require.False(t, sleep(ctx, time.Hour))
		require.Equal(t, time.Second, time.Since(began))
		require.False(t, sleep(ctx, 0))
	})
}

func TestSessionIsConnectedOnceAllCredentialsAreAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accept := make(chan struct{})
		_, dial := serveInMemory(t, func(p *peer) {
			if _, ok := p.grant(7, long); !ok {
				return
			}
			for range 2 {
				f, ok := p.next()
				if !ok {
					return
				}
				select {
				case <-accept:
				case <-t.Context().Done():
					return
				}
				p.answer(f, 1)
			}
			p.next()
		})
		credentials := []Credential{{"digest", []byte("a:b")}, {"digest", []byte("c:d")}}
		c := connect(t, Config{Credentials: credentials, Dial: dial}, "a:1")
		for accepted, want := range []int{0, 0, 1} {
			if accepted > 0 {
				accept <- struct{}{}
			}
			synctest.Wait()
			connected, _ := c.connections()
			require.Equal(t, want, connected, "%d credentials are accepted", accepted)
			require.Equal(t, want == 1, c.Admitted(), "%d credentials are accepted", accepted)
		}
	})
}
