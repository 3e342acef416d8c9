package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/peers"
)

// patience is for everything that must happen.
const patience = time.Minute

// program is what a peer is started with, but for its arguments.
type program struct {
	command []string
	env     []string
}

// programs are the peers that there are, by the language that they speak.
type programs map[string]program

// findPrograms compiles what has to be.
func findPrograms(t testing.TB) programs {
	t.Helper()
	return programs{
		"docent": docentProgram(),
		"java":   {append(peers.Java(t, "java/*.java"), "Peer"), nil},
		"kazoo":  {[]string{peers.Python(t), "-B", "kazoo/peer.py"}, nil},
	}
}

// docentProgram is this one: see TestMain.
func docentProgram() program { return program{[]string{os.Args[0]}, []string{peerVariable + "=1"}} }

// peer is a process.
type peer struct {
	t       testing.TB
	who     string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	done    chan struct{} // closed when it prints nothing any more
	errors  bytes.Buffer
	silence bool // its end is what the test wants

	mu     sync.Mutex
	ready  chan struct{}
	actors map[string]*actor
	next   int
	strays []string // lines that nobody understood
}

// start starts a peer, which ends with the test.
func (p programs) start(t testing.TB, who, servers string, session time.Duration, resources string) *peer {
	t.Helper()
	what := p[who]
	args := append(what.command[1:len(what.command):len(what.command)], servers, fmt.Sprint(session.Milliseconds()), resources)
	cmd := exec.Command(what.command[0], args...)
	cmd.Env = append(os.Environ(), what.env...)
	s := &peer{t: t, who: who, cmd: cmd, done: make(chan struct{}), ready: make(chan struct{}), actors: map[string]*actor{}}
	cmd.Stderr = &s.errors
	var err error
	s.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go s.follow(stdout) // ends with the process
	t.Cleanup(s.end)
	within(t, s.ready, "%s does not start", who)
	return s
}

// end lets the peer end by itself: its input does.
func (p *peer) end() {
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%s does not end", p.who)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	err := p.cmd.Wait()
	if !p.silence && err != nil {
		p.t.Errorf("%s ended badly: %v", p.who, err)
	}
	if p.t.Failed() {
		p.t.Logf("%s said besides: %q\n%s", p.who, p.strays, p.errors.String())
	}
}

// kill is kill -9.
func (p *peer) kill() {
	p.silence = true
	require.NoError(p.t, p.cmd.Process.Kill())
	within(p.t, p.done, "%s lives on", p.who)
}

func (p *peer) follow(stdout io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		name, answer, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		a := p.actors[name]
		switch {
		case name == "ready" && answer == "":
			close(p.ready)
		case a == nil:
			p.strays = append(p.strays, lines.Text())
		case strings.HasPrefix(answer, "! "):
			a.events <- answer[2:]
		default:
			a.answers <- answer
		}
		p.mu.Unlock()
	}
}

// actor is a thread of a peer with a client of its own. It is for one goroutine at a time.
type actor struct {
	*peer
	t       testing.TB
	name    string
	answers chan string
	events  chan string
}

// actor is a new one.
func (p *peer) actor(t testing.TB) *actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	a := &actor{peer: p, t: t, name: fmt.Sprintf("%s-%d", p.who, p.next), answers: make(chan string, 64), events: make(chan string, 64)}
	p.actors[a.name] = a
	return a
}

// tell asks for something whose answer is to be read later.
func (a *actor) tell(words ...any) {
	a.t.Helper()
	line := a.name + " " + strings.TrimSuffix(fmt.Sprintln(words...), "\n") + "\n"
	_, err := io.WriteString(a.stdin, line)
	require.NoError(a.t, err)
}

// answer is that of the oldest request that has not been answered.
func (a *actor) answer() string {
	a.t.Helper()
	return a.hear(a.answers)
}

func (a *actor) hear(from chan string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case answer := <-from:
		return answer
	case <-a.done:
		require.FailNow(a.t, a.name+" is gone")
	case <-ctx.Done():
		require.FailNow(a.t, a.name+" does not answer")
	}
	return ""
}

// do asks for something that must be answered so.
func (a *actor) do(answer string, words ...any) {
	a.t.Helper()
	a.tell(words...)
	require.Equal(a.t, answer, a.answer(), "%s: %v", a.name, words)
}

// lists is what the participants of a lock are.
func (a *actor) lists(lock string) []string {
	a.t.Helper()
	a.tell("participants", lock)
	answer := a.answer()
	require.False(a.t, strings.HasPrefix(answer, "failed"), "%s: %s", a.name, answer)
	return strings.Fields(answer)
}

// waits says that the last request has not been answered.
func (a *actor) waits() bool { return len(a.answers) == 0 }

func within(t testing.TB, c <-chan struct{}, message string, args ...any) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.FailNow(t, fmt.Sprintf(message, args...))
	}
}
