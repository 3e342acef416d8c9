package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
)

// timeout is the limit for what must happen, also on a slow machine.
const timeout = 90 * time.Second

func ended(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}

var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// build builds the program once for all tests, with the race detector if the tests have it. It
// returns the file.
func build(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "quickstart-test-"); binary.err != nil {
			return
		}
		binary.path = filepath.Join(binary.dir, "quickstart.exe") // a file of this name can run on every system
		args := []string{"build", "-o", binary.path}
		if raceEnabled() {
			args = append(args, "-race")
		}
		if text, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
			binary.err = fmt.Errorf("%w: %s", err, text)
		}
	})
	require.NoError(t, binary.err)
	return binary.path
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// running is the real program while it runs. Its workers inherit its stderr, so its output ends
// when all of them have ended.
type running struct {
	cmd    *exec.Cmd
	output output
	lines  chan string // closed when the program and its workers have ended
}

func launch(t *testing.T, args ...string) *running {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	p := &running{cmd: exec.Command(build(t), args...), lines: make(chan string, 10_000)}
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	p.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	require.NoError(t, p.cmd.Start())
	require.NoError(t, writer.Close())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(io.TeeReader(reader, &p.output)); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	return p
}

// line waits for a line that matches, and returns its groups.
func (p *running) line(t *testing.T, pattern string) []string {
	t.Helper()
	expr := regexp.MustCompile(pattern)
	expired := time.After(timeout)
	for {
		select {
		case text, ok := <-p.lines:
			require.True(t, ok, "no line matches %s:\n%s", pattern, &p.output)
			if groups := expr.FindStringSubmatch(text); groups != nil {
				return groups
			}
		case <-expired:
			require.Fail(t, "timeout", "waiting for %s:\n%s", pattern, &p.output)
		}
	}
}

// end waits for the end of the program and of its workers, and returns the exit code.
func (p *running) end(t *testing.T) int {
	t.Helper()
	expired := time.After(timeout)
	for open := true; open; {
		select {
		case _, open = <-p.lines:
		case <-expired:
			require.Fail(t, "timeout", "it or a worker does not end:\n%s", &p.output)
		}
	}
	_ = p.cmd.Wait() // the exit code has the error
	return p.cmd.ProcessState.ExitCode()
}

// requireClosed waits until no server listens at the address.
func requireClosed(t *testing.T, server string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", server)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, timeout, 20*time.Millisecond, "the server at %s is still there", server)
}

// started matches the line that reports the start of a server, and its address.
const started = `Started an in-process ZooKeeper server .* at (\S+)\.$`

var turnLine = regexp.MustCompile(`(?m)worker (\d+) holds the lock \(token (\d+)\): record (\d+) -> (\d+)$`)

func TestDemo(t *testing.T) {
	build(t)
	t.Setenv("PATH", t.TempDir())     // it needs no other program
	p := launch(t, "-session", "10s") // long enough for a slow machine
	server := p.line(t, started)[1]
	require.Zero(t, p.end(t), "%s", &p.output)
	text := p.output.String()

	var record, token int
	for _, m := range turnLine.FindAllStringSubmatch(text, -1) {
		require.Equal(t, strconv.Itoa(record), m[3])
		record++
		require.Equal(t, strconv.Itoa(record), m[4])
		next, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		require.Greater(t, next, token)
		token = next
	}
	require.GreaterOrEqual(t, record, 3*5)
	require.Less(t, record, 4*5)
	for _, want := range []string{
		`NOW IT IS KILLED \(kill -9, process \d+\)`,
		`In the queue for the lock, the holder first: worker \d(, worker \d){1,3}\.`, // the last holders may be missing
		`for the session timeout, 10s\. This wait is that timeout`,
		`after the kill the lock has passed on to worker \d, with a larger token`,
		`the dead worker's write arrives: record \d+ -> \d+, with token \d+`,
		`The store refuses it: token \d+ is older than \d+`,
		fmt.Sprintf(`no lost update: %d writes, and the record is %[1]d;`, record),
		`session timeout: 10s`,
	} {
		require.Regexp(t, want, text)
	}
	require.LessOrEqual(t, strings.Count(text, "\n"), 60)
	requireClosed(t, server)
}

func TestDemoLeavesNothingOnAGivenServer(t *testing.T) {
	server := testzk.Own(t, testzk.Seldom)
	client := testzk.Connected(t, server.Connect())
	for _, c := range []struct{ workers, increments int }{{2, 1}, {20, 3}, {2, 40}} {
		t.Run(fmt.Sprintf("%d workers, %d increments", c.workers, c.increments), func(t *testing.T) {
			t.Parallel()
			chroot := fmt.Sprintf("/given/%d-%d", c.workers, c.increments)
			p := launch(t, "-connect", server.Connect()+chroot, "-session", "10s",
				"-workers", strconv.Itoa(c.workers), "-increments", strconv.Itoa(c.increments))
			require.Zero(t, p.end(t), "%s", &p.output)
			require.NotContains(t, p.output.String(), "Started")
			require.LessOrEqual(t, strings.Count(p.output.String(), "\n"), 60, "%s", &p.output)
			_, err := client.Exists(t.Context(), chroot+folder)
			require.ErrorContains(t, err, "node does not exist")
		})
	}
}

// The program must detect a lock that does not exclude.
func TestBrokenExclusionFailsTheDemo(t *testing.T) {
	t.Setenv(brokenEnv, "1")
	server := testzk.Own(t, testzk.Seldom)
	var out, errs output
	code := run([]string{"-connect", server.Connect(), "-session", "10s"}, &out, &errs)
	require.Equal(t, exitFailed, code, "%s%s", &out, &errs)
	require.Contains(t, errs.String(), "FAILED: BROKEN")
	require.NotContains(t, out.String(), "what it promises")
}

// The worker is killed while the store handles the eighth write, the first that is shown. All
// workers have their jobs by then, and the demonstration has not yet killed a worker itself.
func TestFailedWorkerFailsTheDemo(t *testing.T) {
	server := testzk.Own(t, testzk.Seldom)
	var pid atomic.Int64
	workers := exampletest.Trigger(`Workers 1 to 4 are the processes (\d+),`, func(groups []string) {
		n, err := strconv.Atoi(groups[1])
		require.NoError(t, err)
		pid.Store(int64(n))
	})
	kill := sync.OnceFunc(func() {
		worker, err := os.FindProcess(int(pid.Load()))
		require.NoError(t, err)
		require.NoError(t, worker.Kill())
	})
	turn := exampletest.Trigger(turnLine.String(), func([]string) { kill() })
	var out, errs output
	args := []string{"-connect", server.Connect(), "-session", "10s", "-increments", "50"}
	code := run(args, io.MultiWriter(&out, workers, turn), &errs)
	require.Equal(t, exitFailed, code, "%s%s", &out, &errs)
	require.Contains(t, errs.String(), "FAILED: worker 1 failed")
}

func TestDemoThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	const limit = 500 * time.Millisecond
	cfg := config{connect: server.Connect(), workers: 2, increments: 50, session: time.Second, limit: limit}
	var out, errs output
	err := runDemo(t.Context(), cfg, newReporter(&out, 100), &errs)
	require.ErrorContains(t, err, "it took longer than 500ms")
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	cfg := config{connect: "127.0.0.1:1", workers: 2, increments: 1, session: time.Second, limit: time.Minute}
	var out, errs output
	err := runDemo(t.Context(), cfg, newReporter(&out, 2), &errs)
	require.ErrorIs(t, err, framework.ErrNotConnected)
	require.ErrorContains(t, err, "127.0.0.1:1")
}
