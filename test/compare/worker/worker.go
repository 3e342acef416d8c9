// Package worker starts the programs of package peer in processes of their own, each behind a network of
// its own, and has them pause, die, and be cut off.
package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/service"
)

// Lease is the lease, session timeout and time to live of locks, unless Options have another.
const Lease = 4 * time.Second

// Variable is set to the arguments of a process of this program that is a worker.
const Variable = "DOCENT_COMPARE_WORKER"

// Launcher starts workers. Safe for concurrent use.
type Launcher struct {
	scratch string
	classes func() (string, error) // class path of the programs in Java
}

// NewLauncher returns a Launcher that has the sources of the programs in other languages in a folder.
func NewLauncher(sources string) (*Launcher, error) {
	scratch, err := os.MkdirTemp("", "docent-compare-")
	if err != nil {
		return nil, err
	}
	return &Launcher{scratch: scratch, classes: sync.OnceValues(func() (string, error) {
		return peers.Compile(scratch, filepath.Join(sources, "java", "*.java"))
	})}, nil
}

// Close removes the files of the Launcher.
func (l *Launcher) Close() error { return os.RemoveAll(l.scratch) }

// Options are how a worker is started.
type Options struct {
	Lock   string
	Ahead  time.Duration // how much its clock is ahead
	Direct bool          // it has no network of its own, which would make it slower
	Lease  time.Duration // 0: Lease
}

// Main runs a worker if this process is one, and reports whether it is.
func Main() (bool, error) {
	words := strings.Fields(os.Getenv(Variable))
	if len(words) == 0 {
		return false, nil
	}
	kind, ok := peer.Find(words[0])
	if !ok || len(words) != 5 {
		return true, fmt.Errorf("worker: %q", words)
	}
	lease, err := time.ParseDuration(words[3])
	if err != nil {
		return true, err
	}
	ahead, err := time.ParseDuration(words[4])
	if err != nil {
		return true, err
	}
	return true, peer.Serve(context.Background(), kind, peer.Config{Servers: strings.Split(words[1], ","),
		Name: words[2], Lease: lease, Ahead: ahead}, os.Stdin, os.Stdout)
}

// command returns what runs a worker.
func (l *Launcher) command(k peer.Kind, servers string, o Options) (*exec.Cmd, error) {
	if o.Lease == 0 {
		o.Lease = Lease
	}
	words := []string{servers, o.Lock, fmt.Sprint(o.Lease.Milliseconds())}
	var cmd *exec.Cmd
	switch k.Command {
	case "java":
		classes, err := l.classes()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command("java", append([]string{"-XX:+UseSerialGC",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classes, "Peer"}, words...)...)
	case "python":
		python, err := peers.FindPython()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(python, append([]string{"-B", filepath.Join("kazoo", "peer.py")}, words...)...)
	default:
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %v %v", Variable, k.Name, servers, o.Lock, o.Lease,
			o.Ahead))
		return cmd, nil
	}
	if o.Ahead > 0 {
		clock, err := service.NewClock(l.scratch)
		if err != nil {
			return nil, err
		}
		if err := clock.Set(o.Ahead); err != nil {
			return nil, err
		}
		cmd.Env = append(os.Environ(), clock.Env()...)
	}
	return cmd, nil
}

// Worker is a program that runs. One goroutine uses it.
type Worker struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // closed when it has ended
	stderr bytes.Buffer
	links  []*service.Link
	dead   atomic.Bool
}

// Start starts a program, and waits until it has connected.
func (l *Launcher) Start(ctx context.Context, k peer.Kind, s service.Service, o Options) (w *Worker, err error) {
	w = &Worker{name: k.Name, lines: make(chan string, 16)}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	servers := s.Addrs()
	if !o.Direct {
		for i := range servers {
			link, err := service.NewLink(func() string { return s.Addrs()[i] })
			if err != nil {
				return nil, err
			}
			w.links = append(w.links, link)
			servers[i] = link.Addr()
		}
	}
	if w.cmd, err = l.command(k, strings.Join(servers, ","), o); err != nil {
		return nil, err
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	_, err = w.Hear(ctx, "ready")
	return w, err
}

func (w *Worker) start() (err error) {
	w.cmd.Stderr, w.cmd.SysProcAttr = &w.stderr, service.Child()
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		w.cmd.Process = nil
		return err
	}
	go func() {
		defer close(w.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			w.lines <- lines.Text()
		}
	}()
	return nil
}

// Tell sends a request.
func (w *Worker) Tell(line string) error {
	_, err := fmt.Fprintln(w.in, line)
	return err
}

// ErrFailed means that a program has answered that it has failed.
var ErrFailed = errors.New("failed")

// Hear waits for an answer, which begins with one of the words. It returns all of its words.
func (w *Worker) Hear(ctx context.Context, want ...string) ([]string, error) {
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				return nil, fmt.Errorf("%s has ended", w.name)
			}
			words := strings.Fields(line)
			for _, word := range want {
				if len(words) > 0 && words[0] == word {
					return words, nil
				}
			}
			switch {
			case line == "waiting":
				continue
			case strings.HasPrefix(line, "failed"):
				return nil, fmt.Errorf("%s: %w: %s", w.name, ErrFailed, line)
			}
			return nil, fmt.Errorf("%s: %q, want %v", w.name, line, want)
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no answer %v: %w", w.name, want, ctx.Err())
		}
	}
}

// Ask sends a request and waits for the answer.
func (w *Worker) Ask(ctx context.Context, line string, want ...string) ([]string, error) {
	if err := w.Tell(line); err != nil {
		return nil, err
	}
	return w.Hear(ctx, want...)
}

// Pause stops the program, and Resume lets it go on.
func (w *Worker) Pause() error  { return w.cmd.Process.Signal(syscall.SIGSTOP) }
func (w *Worker) Resume() error { return w.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the program at once.
func (w *Worker) Kill() {
	if w.dead.Swap(true) || w.cmd == nil || w.cmd.Process == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	for range w.lines {
	}
	_ = w.cmd.Wait() // it was killed
}

// Dead reports whether Kill was called.
func (w *Worker) Dead() bool { return w.dead.Load() }

// Links returns the networks between the program and each server.
func (w *Worker) Links() []*service.Link { return w.links }

// Cut cuts the program off, or connects it again.
func (w *Worker) Cut(cut bool) {
	for _, l := range w.links {
		l.Cut(cut)
	}
}

// Close ends the program and its network.
func (w *Worker) Close() {
	w.Kill()
	for _, l := range w.links {
		l.Close()
	}
}
