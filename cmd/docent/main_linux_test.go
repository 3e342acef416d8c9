package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// asDocent is an environment variable. A test binary that has it is docent.
const asDocent = "DOCENT_TEST_AS_DOCENT"

// TestMain makes this process docent if a test has started it as docent. Its watchdogs are made by
// package supervise.
func TestMain(m *testing.M) {
	if os.Getenv(asDocent) != "" {
		_ = os.Unsetenv(asDocent)
		main()
	}
	endWithSignals()
	// Otherwise each process of docent lasts a second with the race detector.
	_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	testzk.Main(m)
}

// endWithSignals has the commands that tests start end with signals that this process ignores because
// it was started with nohup or in the background of a script. Commands inherit that.
func endWithSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// docent returns the command docent with the given arguments. Its environment has nothing of the
// developer's that docent would use.
func docent(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Args = append([]string{"docent"}, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DOCENT_") && !strings.HasPrefix(variable, "XDG_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, asDocent+"=1", "XDG_CONFIG_HOME=/nonexistent")
	return cmd
}

// process is a started docent.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdout *bufio.Reader
	errs   lockedBuffer
	ended  chan struct{}
	code   int // after ended
}

// lockedBuffer is a buffer that one goroutine writes while another one reads it.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// start starts docent without a controlling terminal. It is killed at the end of the test.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	return startCommand(t, docent(args...))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	p.stdout, cmd.Stdout, cmd.Stderr = bufio.NewReader(reader), writer, &p.errs
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // until standard error is closed, too: no process of the command is left
		p.code = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		p.kill()
		testzk.Closes(t, p.ended, "docent or its watchdog does not end")
		_ = reader.Close()
	})
	return p
}

// kill kills the process and its group, such as those that a shell has started, unless it has ended.
func (p *process) kill() {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_ = p.cmd.Process.Kill() // if it has no group of its own
	}
}

// line returns the next line of standard output.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.tryLine()
	require.NoError(p.t, err, "standard error: %s", &p.errs)
	return line
}

// tryLine is line that returns an error if there is no other line.
func (p *process) tryLine() (string, error) {
	p.t.Helper()
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := p.stdout.ReadString('\n')
		read <- result{strings.TrimSuffix(line, "\n"), err}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-time.After(testzk.Patience):
		require.FailNow(p.t, "no output", "standard error: %s", &p.errs)
		return "", nil
	}
}

// wait returns the exit code, -1 for a process that was killed.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testzk.Patience):
		require.FailNow(p.t, "docent does not end", "standard error: %s", &p.errs)
	}
	return p.code
}

// signal sends a signal to docent.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// finish runs docent to its end. It returns the exit code, standard output and standard error.
func finish(t testing.TB, args ...string) (code int, out, errs string) {
	t.Helper()
	return finishCommand(t, docent(args...))
}

func finishCommand(t testing.TB, cmd *exec.Cmd) (code int, out, errs string) {
	t.Helper()
	p := startCommand(t, cmd)
	overdue := time.AfterFunc(2*testzk.Patience, p.kill)
	output, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	code = p.wait()
	require.True(t, overdue.Stop(), "docent did not end: %v: %s%s", cmd.Args, output, &p.errs)
	return code, string(output), p.errs.String()
}
