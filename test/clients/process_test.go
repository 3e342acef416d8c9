package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scriptLimit is the longest duration of a script. All that it waits for happens much sooner, or
// never.
const scriptLimit = 4 * time.Minute

// runScript runs a script to its end and returns its transcript.
func runScript(t *testing.T, c *control, command ...string) transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), scriptLimit)
	defer cancel()
	s := &process{control: c, cmd: exec.CommandContext(ctx, command[0],
		append(slices.Clone(command[1:]), c.Addr(), c.proxy.Addr())...)}
	err := s.run()
	if ctx.Err() != nil {
		err = fmt.Errorf("killed after %v: %w", scriptLimit, err)
	}
	if err != nil {
		t.Errorf("the script failed: %v; its last lines:\n%s", err, s.log.lastLines(30))
	}
	t.Logf("%v\n%s", command, s.log.String())
	require.NoError(t, err)
	require.True(t, s.done, "the script ended early")
	s.seen.requireChecks(t)
	return s.seen
}

// process is a script that runs.
type process struct {
	control *control
	cmd     *exec.Cmd
	stdin   io.Writer
	log     sharedBuffer
	started time.Time
	seen    transcript
	done    bool
}

func (s *process) run() error {
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.stdin, s.cmd.Stderr, s.cmd.WaitDelay = stdin, &s.log, 10*time.Second
	s.started = time.Now()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.follow(stdout)
	return s.cmd.Wait()
}

// follow reads the output until the script's end.
func (s *process) follow(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		line := lines.Text()
		fmt.Fprintf(&s.log, "%6.2fs %s\n", time.Since(s.started).Seconds(), line)
		if check, ok := strings.CutPrefix(line, "ok "); ok {
			s.seen = append(s.seen, check)
		}
		if request, ok := strings.CutPrefix(line, "at "); ok {
			s.answer(request)
		}
		s.done = line == "done"
	}
}

// answer carries out the requested action and answers "go". A script that gets no answer fails, and
// the log has the reason.
func (s *process) answer(request string) {
	reply := "go"
	if err := s.control.do(request); err != nil {
		reply = fmt.Sprintf("failed: %v", err)
	}
	fmt.Fprintln(&s.log, "<", reply)
	if _, err := fmt.Fprintln(s.stdin, reply); err != nil {
		fmt.Fprintln(&s.log, "the script does not read its input:", err)
	}
}

// sharedBuffer has what a process writes to both of its outputs.
type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lastLines returns at most n lines.
func (b *sharedBuffer) lastLines(n int) string {
	lines := strings.SplitAfter(b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
