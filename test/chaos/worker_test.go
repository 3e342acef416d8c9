package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// The test binary is also the worker process: with this set in the environment to what the worker shall do.
const roleVariable = "DOCENT_CHAOS_ROLE"

const lockPath = "/chaos/lock"

func TestMain(m *testing.M) {
	role, isWorker := roles[os.Getenv(roleVariable)]
	if !isWorker {
		os.Exit(m.Run())
	}
	if err := runWorker(role, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

var roles = map[string]func(context.Context, *mutex.Mutex, func(turn)) error{
	"contend": contend,
	"ask":     askOnResume,
}

// turn is one hold, as the process that had it saw it. Times are of the one wall clock that all processes of a machine read, in
// nanoseconds.
type turn struct {
	Token    int64
	From, To int64  // during which the hold was valid
	Lost     string // why it ended, if it was not released
	Release  string // what Release said, if it was lost
	Asleep   time.Duration
}

// runWorker works until its parent closes its standard input, or dies.
func runWorker(role func(context.Context, *mutex.Mutex, func(turn)) error, connect string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	client, err := framework.New(connect, framework.WithSessionTimeout(6*time.Second))
	if err != nil {
		return err
	}
	mu, err := mutex.New(client, lockPath)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	err = role(ctx, mu, func(t turn) { _ = out.Encode(t) })
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, client.Close())
}

// contend takes turns.
func contend(ctx context.Context, mu *mutex.Mutex, report func(turn)) error {
	for ctx.Err() == nil {
		hold, err := mu.Acquire(ctx)
		if errors.Is(err, framework.ErrNotConnected) {
			continue // the caller's decision after the retry policy gave up: go on
		}
		if err != nil {
			return err
		}
		report(work(hold, 2*time.Millisecond))
	}
	return nil
}

// work holds for a while. A hold that ends by itself was valid until its last known deadline at most.
func work(hold *recipes.Hold, d time.Duration) turn {
	t := turn{Token: hold.Token(), From: time.Now().UnixNano()}
	valid := hold.ValidUntil()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hold.Done():
	}
	if until := hold.ValidUntil(); !until.IsZero() {
		valid = until
	}
	t.To = min(time.Now().UnixNano(), valid.UnixNano())
	if err := hold.Err(); err != nil {
		t.Lost = err.Error()
	}
	if err := hold.Release(); err != nil {
		t.Release = err.Error()
	}
	return t
}

// askOnResume holds the lock and asks for it again and again; when it finds that it has slept in between, it tells the first answer.
func askOnResume(ctx context.Context, mu *mutex.Mutex, report func(turn)) error {
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	last := time.Now() // before the report, after which the process can be stopped at any moment
	report(turn{Token: hold.Token()})
	for ctx.Err() == nil {
		err := hold.Err() // before anything else
		now := time.Now()
		asleep := now.Sub(last)
		last = now
		if asleep > 2*time.Second {
			release := hold.Release()
			report(turn{Token: hold.Token(), Asleep: asleep, Lost: text(err), Release: text(release)})
			return nil
		}
		time.Sleep(time.Millisecond) // the workload: asking a thousand times a second
	}
	return ctx.Err()
}

func text(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, framework.ErrSessionLost):
		return "session lost"
	}
	return err.Error()
}

// process is a worker seen from its parent.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when everything it said has been read

	mu    sync.Mutex
	turns []turn
}

func startProcess(t *testing.T, role, connect string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], connect), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.read(stdout) // ends with the process
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) read(stdout io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var t turn
		if json.Unmarshal(lines.Bytes(), &t) == nil {
			p.mu.Lock()
			p.turns = append(p.turns, t)
			p.mu.Unlock()
		}
	}
}

func (p *process) said() []turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]turn(nil), p.turns...)
}

// says waits until the process has reported n turns.
func (p *process) says(t *testing.T, n int) []turn {
	t.Helper()
	testzk.Eventually(t, func() bool { return len(p.said()) >= n }, "process %d is stuck: want %d reports", p.cmd.Process.Pid, n)
	return p.said()
}

// finish asks the process to end and waits until it has.
func (p *process) finish(t *testing.T) []turn {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	select {
	case <-p.done:
	case <-time.After(testzk.Patience):
		require.FailNow(t, "a process does not end")
	}
	require.NoError(t, p.cmd.Wait())
	return p.said()
}
