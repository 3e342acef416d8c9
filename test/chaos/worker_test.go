package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
)

// The test binary is also the worker process: with this set in the environment to what the worker shall do.
const roleVariable = "DOCENT_CHAOS_ROLE"

// What the workers contend for. An election and a latch do not mix on one path.
const (
	lockPath     = "/chaos/lock"
	electionPath = "/chaos/election"
	latchPath    = "/chaos/latch"
)

// sessionTimeout is that of the workers.
const sessionTimeout = 6 * time.Second

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

// A role is what a worker does until ctx ends, or fails to do.
type role func(ctx context.Context, c *framework.Client, report func(turn)) error

var roles = map[string]role{
	"contend": contend,
	"elect":   standElection,
	"latch":   standLatch,
	"ask":     askOnResume,
}

// turn is one hold or one term, as the process that had it saw it. Times are of the one wall clock that all processes of a machine read, in
// nanoseconds.
type turn struct {
	Token    int64
	From, To int64  // between which it was valid, each time that it was asked
	Lost     string // why it ended, if it was not released
	Release  string // what Release said, if it was lost
	Asleep   time.Duration
}

// runWorker works until its parent closes its standard input, or dies.
func runWorker(work role, connect string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	client, err := framework.New(connect, framework.WithSessionTimeout(sessionTimeout))
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	err = work(ctx, client, func(t turn) { _ = out.Encode(t) })
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, client.Close())
}

// contend takes turns.
func contend(ctx context.Context, c *framework.Client, report func(turn)) error {
	mu, err := mutex.New(c, lockPath)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		hold, err := mu.Acquire(ctx)
		if errors.Is(err, framework.ErrNotConnected) {
			continue // the caller's decision after the retry policy gave up: go on
		}
		if err != nil {
			return err
		}
		t := during(ctx, hold, 2*time.Millisecond)
		if err := hold.Release(); err != nil {
			t.Release = err.Error()
		}
		report(t)
	}
	return nil
}

// standElection leads for a while each time that it is elected.
func standElection(ctx context.Context, c *framework.Client, report func(turn)) error {
	e, err := leader.New(c, electionPath)
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		report(during(ctx, t, whileLeading()))
		return nil
	})
}

// standLatch is the same with a latch.
func standLatch(ctx context.Context, c *framework.Client, report func(turn)) error {
	l, err := leader.NewLatch(c, latchPath)
	if err != nil {
		return err
	}
	if err := l.Start(ctx); err != nil {
		return err
	}
	for {
		t, err := l.Await(ctx)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		report(during(ctx, t, whileLeading()))
		_ = t.Resign() // what cannot be deleted at once is deleted in the background
	}
}

// whileLeading is long enough for servers to be killed under a leader.
func whileLeading() time.Duration { return rand.N(400 * time.Millisecond) }

// holding is a hold or a term.
type holding interface {
	Token() int64
	Done() <-chan struct{}
	Err() error
}

// during asks for a while, or until ctx ends, whether h is valid. It has been so at least until before the last question that was
// answered with yes.
func during(ctx context.Context, h holding, d time.Duration) turn {
	t := turn{Token: h.Token(), From: time.Now().UnixNano()}
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ended := false; ; {
		asked := time.Now().UnixNano()
		if err := h.Err(); err != nil {
			t.Lost = err.Error()
			return t
		}
		if t.To = asked; ended {
			return t
		}
		select {
		case <-time.After(time.Millisecond):
		case <-h.Done():
		case <-over.Done():
			ended = true
		}
	}
}

// askOnResume holds the lock and asks for it again and again; when it finds that it has slept in between, it tells the first answer.
func askOnResume(ctx context.Context, c *framework.Client, report func(turn)) error {
	mu, err := mutex.New(c, lockPath)
	if err != nil {
		return err
	}
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

// finish asks processes to end and waits until they have: all at once, since the race detector takes a second for each.
func finish(t *testing.T, processes ...*process) (said []turn) {
	t.Helper()
	for _, p := range processes {
		require.NoError(t, p.stdin.Close())
	}
	for _, p := range processes {
		select {
		case <-p.done:
		case <-time.After(testzk.Patience):
			require.FailNow(t, "a process does not end")
		}
		require.NoError(t, p.cmd.Wait())
		said = append(said, p.said()...)
	}
	return said
}
