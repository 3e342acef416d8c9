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

// patience is the time limit of everything that must happen.
const patience = time.Minute

// program is the command and the environment of a peer, without its arguments.
type program struct {
	command []string
	env     []string
}

// programs are the available peers, by language.
type programs map[string]program

// findPrograms compiles the peers that need it.
func findPrograms(t testing.TB) programs {
	t.Helper()
	return programs{
		"docent": docentProgram(),
		"java":   {append(peers.Java(t, "java/*.java"), "Peer"), nil},
		"kazoo":  {[]string{peers.Python(t), "-B", "kazoo/peer.py"}, nil},
	}
}

// docentProgram is this test binary: see TestMain.
func docentProgram() program { return program{[]string{os.Args[0]}, []string{peerVariable + "=1"}} }

// peer is a process.
type peer struct {
	t        testing.TB
	language string
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	done     chan struct{} // closed at the end of its output
	errors   bytes.Buffer
	silence  bool // the test ends the process, so its status does not matter

	mu         sync.Mutex
	ready      chan struct{}
	actors     map[string]*actor
	next       int
	otherLines []string // lines that belong to no actor
}

// start starts a peer, which ends with the test.
func (p programs) start(t testing.TB, language, servers string, session time.Duration, resources string) *peer {
	t.Helper()
	what := p[language]
	args := append(what.command[1:len(what.command):len(what.command)], servers, fmt.Sprint(session.Milliseconds()),
		resources)
	cmd := exec.Command(what.command[0], args...)
	cmd.Env = append(os.Environ(), what.env...)
	s := &peer{t: t, language: language, cmd: cmd, done: make(chan struct{}), ready: make(chan struct{}),
		actors: map[string]*actor{}}
	cmd.Stderr = &s.errors
	var err error
	s.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go s.follow(stdout) // ends with the process
	t.Cleanup(s.end)
	within(t, s.ready, "%s does not start", language)
	return s
}

// end closes the input of the peer, so that it ends by itself.
func (p *peer) end() {
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%s does not end", p.language)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	err := p.cmd.Wait()
	if !p.silence && err != nil {
		p.t.Errorf("%s ended with an error: %v", p.language, err)
	}
	if p.t.Failed() {
		p.t.Logf("other output of %s: %q\n%s", p.language, p.otherLines, p.errors.String())
	}
}

// kill ends the peer with SIGKILL.
func (p *peer) kill() {
	p.silence = true
	require.NoError(p.t, p.cmd.Process.Kill())
	within(p.t, p.done, "%s does not end", p.language)
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
			p.otherLines = append(p.otherLines, lines.Text())
		case strings.HasPrefix(answer, "! "):
			a.events <- answer[2:]
		default:
			a.answers <- answer
		}
		p.mu.Unlock()
	}
}

// actor is a thread of a peer with a client of its own. It must not be used by several goroutines
// at a time.
type actor struct {
	*peer
	t       testing.TB
	name    string
	answers chan string
	events  chan string
}

// actor returns a new actor.
func (p *peer) actor(t testing.TB) *actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	a := &actor{peer: p, t: t, name: fmt.Sprintf("%s-%d", p.language, p.next), answers: make(chan string, 64),
		events: make(chan string, 64)}
	p.actors[a.name] = a
	return a
}

// tell sends a request whose answer is read later.
func (a *actor) tell(words ...any) {
	a.t.Helper()
	line := a.name + " " + strings.TrimSuffix(fmt.Sprintln(words...), "\n") + "\n"
	_, err := io.WriteString(a.stdin, line)
	require.NoError(a.t, err)
}

// answer returns the answer to the oldest request without one.
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

// do sends a request and checks its answer.
func (a *actor) do(answer string, words ...any) {
	a.t.Helper()
	a.tell(words...)
	require.Equal(a.t, answer, a.answer(), "%s: %v", a.name, words)
}

// lists returns the participants of a lock.
func (a *actor) lists(lock string) []string {
	a.t.Helper()
	a.tell("participants", lock)
	answer := a.answer()
	require.False(a.t, strings.HasPrefix(answer, "failed"), "%s: %s", a.name, answer)
	return strings.Fields(answer)
}

// waits reports whether the last request has no answer yet.
func (a *actor) waits() bool { return len(a.answers) == 0 }

func within(t testing.TB, c <-chan struct{}, message string, args ...any) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.FailNow(t, fmt.Sprintf(message, args...))
	}
}
