package main

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
	"time"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/test/bench/peer"
)

// contender is a peer as the benchmark uses it. It does one thing at a time.
type contender interface {
	open(job string, j peer.Job) error
	run(job string, long time.Duration) (peer.Result, error)
	close(job string) error
}

var errUnsupported = errors.New("not supported")

// process is a peer that runs by itself.
type process struct {
	name    string
	command []string
	version string // what it says that it is
	gone    bool   // it has ended, or was killed because it did not answer
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Scanner
	stderr  bytes.Buffer
}

// hang is how long one answer can take.
const hang = time.Minute

// longest is the length of a line, which may be that of a histogram.
const longest = 1 << 20

func launch(name string, command ...string) (*process, error) {
	p := &process{name: name, command: command}
	return p, p.start()
}

func (p *process) start() (err error) {
	p.cmd, p.gone = exec.Command(p.command[0], p.command[1:]...), false
	p.stderr.Reset()
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.lines = bufio.NewScanner(stdout)
	p.lines.Buffer(nil, longest)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.version, err = p.hear("ready")
	return err
}

// end lets the process end by itself: its input does.
func (p *process) end() error {
	if p.gone {
		return nil
	}
	_ = p.stdin.Close()
	stop := time.AfterFunc(hang, func() { _ = p.cmd.Process.Kill() })
	defer stop.Stop()
	return p.cmd.Wait()
}

// ask says something, and returns what comes behind the expected word of the answer.
func (p *process) ask(want, format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		return "", fmt.Errorf("%s is gone: %w: %s", p.name, err, p.lastWords())
	}
	return p.hear(want)
}

func (p *process) hear(want string) (string, error) {
	stop := time.AfterFunc(hang, func() { _ = p.cmd.Process.Kill() })
	defer stop.Stop()
	if !p.lines.Scan() {
		return "", fmt.Errorf("%s is gone: %w: %s", p.name, errors.Join(io.ErrUnexpectedEOF, p.lines.Err()), p.lastWords())
	}
	word, rest, _ := strings.Cut(p.lines.Text(), " ")
	switch word {
	case want:
		return rest, nil
	case "unsupported":
		return "", errUnsupported
	}
	return "", fmt.Errorf("%s: %s", p.name, p.lines.Text())
}

// lastWords are the end of what a process that has ended has said besides.
func (p *process) lastWords() string {
	p.gone = true
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	words := strings.TrimSpace(p.stderr.String())
	return words[max(0, len(words)-1000):]
}

// open starts the process again if it is gone: what has gone wrong in one workload need not in the next.
func (p *process) open(job string, j peer.Job) error {
	if p.gone {
		if err := p.start(); err != nil {
			return err
		}
	}
	_, err := p.ask("opened", "open %s %v", job, j)
	return err
}

func (p *process) run(job string, long time.Duration) (peer.Result, error) {
	answer, err := p.ask("ran", "run %s %d", job, long.Milliseconds())
	if err != nil {
		return peer.Result{}, err
	}
	return peer.ParseResult(answer)
}

func (p *process) close(job string) error {
	if p.gone {
		return nil
	}
	_, err := p.ask("closed", "close %s", job)
	return err
}

// crew are all peers that there are.
type crew struct {
	all     map[string]contender
	running []*process
	absent  []string // who is not there, and why
	scratch string
	profile string // where docent's is written to; empty for none
}

// names are those of all peers, in the order in which tables list them.
var names = []string{"floor", "docent", "curator", "kazoo", "zk.Lock", "etcd"}

// muster starts the peers. Who cannot be started is left out, with the reason, but for docent and the floor.
func muster(ctx context.Context, profile string) (_ *crew, err error) {
	c := &crew{all: map[string]contender{}, profile: profile}
	defer func() {
		if err != nil {
			c.dismiss()
		}
	}()
	if c.scratch, err = os.MkdirTemp("", "docent-bench-"); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		command, err := c.command(name, self)
		if err == nil {
			err = c.start(name, command)
		}
		if err != nil && (name == "floor" || name == "docent") || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		if err != nil {
			c.absent = append(c.absent, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return c, nil
}

func (c *crew) start(name string, command []string) error {
	p, err := launch(name, command...)
	if err != nil {
		return err
	}
	c.all[name] = p
	c.running = append(c.running, p)
	return nil
}

func (c *crew) command(name, self string) ([]string, error) {
	switch name {
	case "curator":
		classPath, err := peers.Compile(c.scratch, filepath.Join("java", "*.java"))
		if err != nil {
			return nil, err
		}
		return []string{"java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classPath, "Peer", known(peers.CuratorVersion())}, nil
	case "kazoo":
		python, err := peers.FindPython()
		return []string{python, "-B", filepath.Join("kazoo", "peer.py")}, err
	case "docent":
		return []string{self, "-peer", name, "-profile", c.profile}, nil
	}
	return []string{self, "-peer", name}, nil
}

// dismiss ends all peers.
func (c *crew) dismiss() {
	for _, p := range c.running {
		_ = p.end()
	}
	_ = os.RemoveAll(c.scratch)
}

// versions are what the peers say that they are.
func (c *crew) versions() (all []string) {
	for _, p := range c.running {
		all = append(all, p.version)
	}
	return all
}
