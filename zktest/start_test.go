package zktest_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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
