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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

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
		testzk.Widen() // most of the time they wait
		os.Exit(m.Run())
	}
	if err := runWorker(role, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// A role is what a worker does until ctx ends, or fails to do.
type role func(ctx context.Context, w *worker) error

var roles = map[string]role{
	"contend": contend,
	"elect":   standElection,
	"latch":   standLatch,
	"ask":     askOnResume,
	"watch":   watchHold,
	"siege":   siegeWork,
	"follow":  followWork,
}

// settings are those of a worker's client.
type settings struct {
	Timeout time.Duration
	Quorum  bool   // with WithQuorumHeartbeat
	Lock    string // what a worker that watches a hold acquires
	Log     string // the file that the client's log goes to, with debug messages
	Name    string // of the worker, for what it keeps
	Number  int    // of the worker: its digit in a counter
	Seed    uint64 // of the worker's random choices
	Data    string // of what it keeps
	Older   bool   // the servers seem to be older than 3.6
}

func (s settings) options() ([]framework.Option, error) {
	opts := []framework.Option{framework.WithSessionTimeout(s.Timeout)}
	if s.Quorum {
		opts = append(opts, framework.WithQuorumHeartbeat())
	}
	if s.Older {
		opts = append(opts, framework.WithDialer(olderServers))
	}
	if s.Log != "" {
		config := zap.NewProductionConfig()
		config.OutputPaths, config.Sampling = []string{s.Log}, nil
		config.Level.SetLevel(zap.DebugLevel) // to explain a node that is left
		config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		logger, err := config.Build()
		if err != nil {
			return nil, err
		}
		opts = append(opts, framework.WithLogger(logger))
	}
	return opts, nil
}

// worker is a worker seen from inside.
type worker struct {
	settings
	client  *framework.Client
	orders  <-chan string // from its parent
	report  func(turn)
	random  *rand.Rand     // of the goroutine that runs the role
	running sync.WaitGroup // goroutines that end with the role's context
	pairs   atomic.Int64   // the number of the last write hold that became a read hold
}

// turn is one hold or one term, as the process that had it saw it. Times are of the one clock that all
// processes of a machine read, in nanoseconds.
type turn struct {
	Kind     string `json:",omitempty"` // what was held, or another thing that is reported
	Lock     string `json:",omitempty"`
	Token    int64
	Called   int64             `json:",omitempty"` // when the acquire began
	From, To int64             // between which it was valid, each time that it was asked
	Until    int64             `json:",omitempty"` // until when it said at From that it would be valid
	Lost     string            `json:",omitempty"` // why it ended, if it was not released
	Release  string            `json:",omitempty"` // what Release said
	Wrote    int64             `json:",omitempty"` // the transaction by which the holder wrote its token
	Session  int64             `json:",omitempty"`
	Granted  time.Duration     `json:",omitempty"` // the session timeout
	Worker   int               `json:",omitempty"` // the process id
	By       int64             `json:",omitempty"` // of a write hold and the read hold that it became: the same
	Outcome  framework.Outcome `json:",omitempty"` // of an addition

	*Report `json:",omitempty"`
}

// runWorker works until its parent closes its standard input, or dies.
func runWorker(work role, connect, with string) error {
	var s settings
	if err := json.Unmarshal([]byte(with), &s); err != nil {
		return err
	}
	opts, err := s.options()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	orders := make(chan string)
	go func() { // ends with the process
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			orders <- lines.Text()
		}
		stop()
	}()
	random := randomOf(s.Seed)
	client, err := framework.New(connect, append(opts, framework.WithRandom(another(random).Int64N))...)
	if err != nil {
		return err
	}
	var writing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	report := func(t turn) {
		t.Worker = os.Getpid()
		writing.Lock()
		defer writing.Unlock()
		_ = out.Encode(t)
	}
	w := &worker{settings: s, client: client, orders: orders, report: report, random: random}
	err = work(ctx, w)
	if ctx.Err() != nil {
		err = nil
	}
	stop()
	w.running.Wait()
	return errors.Join(err, client.Close())
}

// contend takes turns.
func contend(ctx context.Context, w *worker) error {
	mu, err := mutex.New(w.client, lockPath)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		hold, err := mu.Acquire(ctx)
		if framework.IsTransient(err) || errors.Is(err, framework.ErrNotConnected) {
			continue // the caller's decision after the retry policy gave up: go on
		}
		if err != nil {
			return err
		}
		t := during(ctx, hold, 2*time.Millisecond)
		if err := hold.Release(); err != nil {
			t.Release = err.Error()
		}
		w.report(t)
	}
	return nil
}

// standElection leads for a while each time that it is elected.
func standElection(ctx context.Context, w *worker) error {
	e, err := leader.New(w.client, electionPath)
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		w.report(during(ctx, t, w.whileLeading()))
		return nil
	})
}

// standLatch is the same with a latch.
func standLatch(ctx context.Context, w *worker) error {
	l, err := leader.NewLatch(w.client, latchPath)
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
		w.report(during(ctx, t, w.whileLeading()))
		_ = t.Resign() // what cannot be deleted at once is deleted in the background
	}
}

// whileLeading is long enough for servers to be killed under a leader.
func (w *worker) whileLeading() time.Duration { return below(w.random, 400*time.Millisecond) }

func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// another returns random choices for another goroutine.
func another(random *rand.Rand) *rand.Rand { return randomOf(random.Uint64()) }

// below returns a random duration that is shorter than d.
func below(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// holding is a hold or a term.
type holding interface {
	Token() int64
	Done() <-chan struct{}
	Err() error
}

// during asks for a while, or until ctx ends, whether h is valid. It was valid at least until the
// last call that found it valid. The functions get each such report.
func during(ctx context.Context, h holding, d time.Duration, yes ...func(turn)) turn {
	t := turn{Token: h.Token(), From: now()}
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ended := false; ; {
		asked := now()
		if err := h.Err(); err != nil {
			t.Lost = err.Error()
			return t
		}
		t.To = asked
		for _, tell := range yes {
			tell(t)
		}
		if ended {
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

// askOnResume holds the lock and calls Err again and again. It reports the first call that finds the hold
// lost, and when the last call before it began.
func askOnResume(ctx context.Context, w *worker) error {
	mu, err := mutex.New(w.client, lockPath)
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	w.report(turn{Token: hold.Token()}) // the process can be stopped at any moment from now on
	for last := int64(0); ctx.Err() == nil; {
		asked := now()
		if err := hold.Err(); err != nil {
			release := hold.Release()
			w.report(turn{Token: hold.Token(), To: last, Lost: text(err), Release: text(release)})
			return nil
		}
		last = asked
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

// watchHold holds the lock until it is lost, and tells each time that the moment until which it can be
// relied on has moved.
func watchHold(ctx context.Context, w *worker) error {
	mu, err := mutex.New(w.client, w.Lock)
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	session, err := w.client.Session(ctx)
	if err != nil {
		return err
	}
	var until time.Time
	whole := during(ctx, hold, time.Hour, func(valid turn) {
		if moved := hold.ValidUntil(); moved.After(until) {
			until = moved
			valid.Kind, valid.Until = "moved", moved.UnixNano()
			valid.Session, valid.Granted = session.ID(), session.Timeout()
			w.report(valid)
		}
	})
	whole.Kind = "ended"
	w.report(whole)
	return nil
}

// process is a worker seen from its parent.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when everything it said has been read

	mu    sync.Mutex
	turns []turn
}

func startProcess(t *testing.T, role, connect string) *process {
	t.Helper()
	return startProcessWith(t, role, connect, settings{Timeout: sessionTimeout, Seed: rand.Uint64()})
}

func startProcessWith(t *testing.T, role, connect string, with settings) *process {
	t.Helper()
	text, err := json.Marshal(with)
	require.NoError(t, err)
	p := &process{cmd: exec.Command(os.Args[0], connect, string(text)), done: make(chan struct{})}
	// A worker with a data race ends at once, because one that is killed later would not fail the test.
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=halt_on_error=1 "+os.Getenv("GORACE"))
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
	lines.Buffer(nil, 64<<20) // a report of a cache is long
	for lines.Scan() {
		var t turn
		if json.Unmarshal(lines.Bytes(), &t) == nil {
			p.mu.Lock()
			p.turns = append(p.turns, t)
			p.mu.Unlock()
		}
	}
}

// order gives the worker a line to read.
func (p *process) order(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

func (p *process) said() []turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]turn(nil), p.turns...)
}

// take returns what the worker has said since the last time.
func (p *process) take() []turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.turns
	p.turns = nil
	return said
}

// says waits until the process has reported n turns.
func (p *process) says(t *testing.T, n int) []turn {
	t.Helper()
	testzk.Eventually(t, func() bool { return len(p.said()) >= n },
		"process %d is stuck: want %d reports", p.cmd.Process.Pid, n)
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
