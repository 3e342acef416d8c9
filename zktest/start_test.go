package zktest_test

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// fakeTB is a test with a Fatalf that returns.
type fakeTB struct {
	failed   bool
	fatal    string
	logged   string
	cleanups []func()
}

func (f *fakeTB) Helper()                      {}
func (f *fakeTB) Cleanup(fn func())            { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) Failed() bool                 { return f.failed }
func (f *fakeTB) Logf(format string, a ...any) { f.logged += fmt.Sprintf(format, a...) }

func (f *fakeTB) Fatalf(format string, a ...any) {
	f.failed, f.fatal = true, fmt.Sprintf(format, a...)
}

func (f *fakeTB) end() {
	for _, fn := range f.cleanups {
		fn()
	}
}

func TestStartFailsTheTest(t *testing.T) {
	tb := &fakeTB{}
	require.Nil(t, zktest.Start(tb, zktest.WithTick(0)))
	require.Equal(t, "zktest: WithTick(0s): want 1ms or more", tb.fatal)
	require.Empty(t, tb.cleanups)
}

func TestFailedTestShowsTheTrace(t *testing.T) {
	tb := &fakeTB{}
	srv := zktest.Start(tb)
	require.NoError(t, srv.Create("/seen", nil))
	tb.failed = true
	tb.end()
	require.Contains(t, tb.logged, "create /seen by the test")
	require.Error(t, srv.Start(), "it was closed")
}

func TestPassedTestShowsNothing(t *testing.T) {
	tb := &fakeTB{}
	srv := zktest.Start(tb)
	require.NoError(t, srv.Create("/seen", nil))
	tb.end()
	require.Empty(t, tb.logged)
}

func TestListenerOnTakenPortIsError(t *testing.T) {
	first, err := zktest.New(zktest.WithListener("127.0.0.1:0"))
	require.NoError(t, err)
	defer first.Close()
	_, err = zktest.New(zktest.WithListener(first.Addr()))
	require.ErrorContains(t, err, first.Addr())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

// The server stops while a request comes, which takes its time after a pause. Another goroutine starts it again.
func TestVirtualTimeGoesOnWhileAServerStops(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Pause()
		c.send(t, 1, rawzk.Ping())
		time.Sleep(time.Second) // the request has come
		stopped := make(chan struct{})
		srv.Resume(zktest.RequestsFirst)
		synctest.Wait() // until the goroutine of the connection waits for its instant
		go func() {
			defer close(stopped)
			srv.Stop()
		}()
		synctest.Wait()
		require.NoError(t, srv.Start())
		<-stopped
	}, zktest.WithSeed(1))
}
