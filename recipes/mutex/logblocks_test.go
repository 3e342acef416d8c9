package mutex_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The log of a client blocks, panics, or ends its goroutine at each entry. The client works as it does without
// a log, and keeps no lock from others.
func TestLogKeepsAClientFromNothing(t *testing.T) {
	for name, end := range map[string]func(over <-chan struct{}){
		"blocks": func(over <-chan struct{}) { <-over },
		"panics": func(<-chan struct{}) { panic("end") },
		"ends":   func(<-chan struct{}) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				over := make(chan struct{})
				core, _ := observer.New(zap.DebugLevel)
				log := zap.New(core, zap.Hooks(func(zapcore.Entry) error {
					end(over)
					return nil
				}))
				client := func(name string, opts ...framework.Option) *framework.Client {
					opts = append(opts, framework.WithSessionTimeout(10*time.Second),
						framework.WithDialer(srv.Client(name).DialContext))
					return testzk.Connected(t, srv.MemAddr(), opts...)
				}
				l := &loggedClient{srv, client("c", framework.WithLogger(log)), client("other")}
				l.losesItsSession(t)
				l.losesANode(t)
				l.leavesALateNode(t)
				begun := time.Now()
				require.NoError(t, l.c.Close())
				require.LessOrEqual(t, time.Since(begun), 2*time.Second)
				require.NotContains(t, srv.Tree(), "ephemeral")
				close(over)
			})
		})
	}
}

// loggedClient is a client with such a log, and another one without.
type loggedClient struct {
	srv      *zktest.Server
	c, other *framework.Client
}

// within acquires a lock within the time that a lost session takes, and releases it.
func (l *loggedClient) within(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	hold, err := newMutex(t, c, path).Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

func (l *loggedClient) losesItsSession(t *testing.T) {
	t.Helper()
	hold := mustAcquire(t, newMutex(t, l.c, "/a"))
	l.srv.Client("c").Cut()
	<-hold.Done()
	l.srv.Client("c").Heal()
	l.within(t, l.other, "/a")
	l.within(t, l.c, "/a")
}

func (l *loggedClient) losesANode(t *testing.T) {
	t.Helper()
	hold := mustAcquire(t, newMutex(t, l.c, "/a"))
	require.NoError(t, l.srv.Delete(hold.Path()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	_, err := hold.Guard(ctx)
	require.ErrorIs(t, err, recipes.ErrNodeDeleted)
	require.LessOrEqual(t, time.Since(begun), time.Second)
	l.within(t, l.other, "/a")
}

func (l *loggedClient) leavesALateNode(t *testing.T) {
	t.Helper()
	l.within(t, l.c, "/late")
	l.srv.On(fault.Match{Client: "c", Op: fault.OpCreate, Times: 1}, fault.DropAfter())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := newMutex(t, l.c, "/late").Acquire(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	l.within(t, l.other, "/late")
}
