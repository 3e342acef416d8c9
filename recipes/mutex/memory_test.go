package mutex_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// serverVariable makes this program a server, for tests that measure the memory of a client alone.
const serverVariable = "DOCENT_TEST_SERVER"

// serve runs a server until the end of standard input, and prints its address.
func serve() {
	srv, err := zktest.New()
	if err == nil {
		err = srv.Start()
	}
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	fmt.Println(srv.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serverOutside starts a server in another process and returns its address.
func serverOutside(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), serverVariable+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait())
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

// TestPathsThatWereLockedLeaveNoMemory locks many paths, one after the other. A second acquire waits
// for each lock.
func TestPathsThatWereLockedLeaveNoMemory(t *testing.T) {
	const (
		paths   = 1500
		perPath = 50 // bytes; a map that keeps paths needs more than a hundred for each
	)
	if realzk.Wanted() != "" {
		t.Skip("has a server of its own")
	}
	c := testzk.Connected(t, serverOutside(t))
	heapAfter := func(round string, opts ...mutex.Option) uint64 {
		for i := range paths {
			lock, err := mutex.New(c, fmt.Sprintf("/%s-%d", round, i), opts...)
			require.NoError(t, err)
			lockAndWait(t, lock)
		}
		return heapInUse()
	}
	handoff := mutex.WithLocalHandoff(mutex.Handoff{Streak: 2, Span: time.Minute})
	heapAfter("first") // buffers and maps reach their size
	heapAfter("first-handoff", handoff)
	before := heapInUse()
	require.Less(t, heapAfter("second"), before+paths*perPath)
	require.Less(t, heapAfter("second-handoff", handoff), before+2*paths*perPath)
	runtime.KeepAlive(c)
}

// lockAndWait acquires the lock, has another acquire wait for it, and releases both.
func lockAndWait(t *testing.T, lock *mutex.Mutex) {
	hold, err := lock.Acquire(t.Context())
	require.NoError(t, err)
	next := make(chan error)
	go func() {
		second, err := lock.Acquire(t.Context())
		if err == nil {
			err = second.Release()
		}
		next <- err
	}()
	require.NoError(t, hold.Release())
	require.NoError(t, <-next)
}

// heapInUse returns the size of what the program can still reach.
func heapInUse() uint64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
