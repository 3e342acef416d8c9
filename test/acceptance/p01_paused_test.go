//go:build unix

package acceptance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
)

// The test binary is also the process that is paused. If these variables are set in the
// environment, it holds a lock and runs no test, so that it does not start another process.
const (
	p01Servers = "DOCENT_P01_SERVERS"
	p01Path    = "DOCENT_P01_PATH"
)

func init() {
	servers := os.Getenv(p01Servers)
	if servers == "" {
		return
	}
	time.AfterFunc(testzk.Patience, func() { os.Exit(3) }) // also if the parent process dies
	if err := p01Child(servers, os.Getenv(p01Path)); err != nil {
		fmt.Fprintln(os.Stderr, "the process that holds:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// p01Report is a line that the process prints. The first one reports the hold, the second one has
// the answers to the first calls after the pause.
type p01Report struct {
	Token  int64
	Asleep time.Duration
	Valid  int64  // when the last call began that found the hold valid, in nanoseconds
	Lost   string // the text of Err
	Told   bool   // Done was already closed
	Guard  string // the error of Guard
}

// p01Child holds the lock and calls its methods in a loop, until it finds that the hold is lost.
func p01Child(servers, path string) error {
	client, err := framework.New(servers, framework.WithSessionTimeout(p01Timeout))
	if err != nil {
		return err
	}
	mu, err := mutex.New(client, path)
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(context.Background())
	if err != nil {
		return err
	}
	valid := time.Now() // before it reports that it may be paused
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(p01Report{Token: hold.Token()}); err != nil {
		return err
	}
	for {
		now := time.Now()
		told := p01IsClosed(hold.Done())
		lost := hold.Err()
		if lost == nil {
			valid = now
			continue
		}
		asleep := time.Since(valid)
		_, err := hold.Guard(context.Background(), framework.CreateOp("/guarded", nil))
		return out.Encode(p01Report{Token: hold.Token(), Asleep: asleep, Valid: valid.UnixNano(), Lost: p01Text(lost),
			Told: told, Guard: p01Text(err)})
	}
}

func p01Text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func p01IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A process that holds a lock is stopped for three session timeouts and continues. Meanwhile
// another process has acquired the lock. The first call after the pause reports that the hold is
// lost. The clocks are compared in each call, so no timer needs to have fired.
func TestP01_FirstQuestionOfAStoppedProcessSaysLost(t *testing.T) {
	t.Parallel()
	for {
		path := testzk.Path(t)
		process, reports := p01Start(t, path)
		held := p01Next(t, reports)
		require.NoError(t, process.Signal(syscall.SIGSTOP))
		stopped := time.Now()

		next := p01Hold(t, testzk.Connected(t, testzk.Connect()), path)
		require.Greater(t, next.Token(), held.Token)
		time.Sleep(time.Until(stopped.Add(3 * p01Timeout)))
		resumed := time.Now()
		require.NoError(t, process.Signal(syscall.SIGCONT))

		answer := p01Next(t, reports)
		require.Less(t, answer.Valid, resumed.UnixNano(), "a call after the pause has found the hold valid")
		require.Contains(t, answer.Lost, framework.ErrSessionLost.Error(), "the first answer after the pause")
		require.Contains(t, answer.Guard, framework.ErrSessionLost.Error())
		require.NoError(t, next.Err())
		require.NoError(t, next.Release())
		t.Logf("first call after a pause of %v, Done was closed: %v, Err: %s", answer.Asleep, answer.Told, answer.Lost)
		if answer.Asleep > 2*p01Timeout {
			return
		} // otherwise a busy machine has lost the session before the pause
	}
}

// p01Start starts a process that holds the lock at path, and returns a channel of its reports.
func p01Start(t *testing.T, path string) (*os.Process, <-chan p01Report) {
	t.Helper()
	require.Empty(t, os.Getenv(p01Servers), "a child process must not start another")
	ctx, cancel := context.WithTimeout(context.Background(), testzk.Patience)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), p01Servers+"="+testzk.Connect(), p01Path+"="+path)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	reports := make(chan p01Report, 2)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(reports)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var r p01Report
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				reports <- r
			}
		}
	}()
	t.Cleanup(func() {
		cancel() // kills it, stopped or not
		<-read
		_ = cmd.Wait()
	})
	return cmd.Process, reports
}

func p01Next(t *testing.T, reports <-chan p01Report) p01Report {
	t.Helper()
	select {
	case r, ok := <-reports:
		require.True(t, ok, "the process has ended")
		return r
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the process prints nothing")
	}
	panic("unreachable")
}
