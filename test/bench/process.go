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
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/internal/peers"
	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

// contender is a peer as the benchmark uses it. It must not be used by several goroutines at a
// time.
type contender interface {
	open(job string, j peer.Job) error
	run(job string, long time.Duration) (peer.Result, error)
	close(job string) error
}

var errUnsupported = errors.New("not supported")

// process is a peer in a process of its own.
type process struct {
	name    string
	command []string
	version string // from its first line
	ended   bool   // it has ended, or was killed because it did not answer
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Scanner
	stderr  bytes.Buffer
}

// answerLimit is the time limit of one answer. A million paths take about a minute.
const answerLimit = 5 * time.Minute

// longest is the longest line, which may have a histogram.
const longest = 1 << 20

func launch(name string, command ...string) (*process, error) {
	p := &process{name: name, command: command}
	return p, p.start()
}

func (p *process) start() (err error) {
	p.cmd, p.ended = exec.Command(p.command[0], p.command[1:]...), false
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

// end closes the input of the process, so that it ends by itself.
func (p *process) end() error {
	if p.ended {
		return nil
	}
	_ = p.stdin.Close()
	stop := time.AfterFunc(answerLimit, func() { _ = p.cmd.Process.Kill() })
	defer stop.Stop()
	return p.cmd.Wait()
}

// ask sends a request, and returns the rest of the answer, which must begin with want.
func (p *process) ask(want, format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		return "", fmt.Errorf("%s has ended: %w: %s", p.name, err, p.errorOutput())
	}
	return p.hear(want)
}

func (p *process) hear(want string) (string, error) {
	stop := time.AfterFunc(answerLimit, func() { _ = p.cmd.Process.Kill() })
	defer stop.Stop()
	if !p.lines.Scan() {
		return "", fmt.Errorf("%s has ended: %w: %s", p.name, errors.Join(io.ErrUnexpectedEOF, p.lines.Err()),
			p.errorOutput())
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

// errorOutput returns the end of the error output of a process that has ended.
func (p *process) errorOutput() string {
	p.ended = true
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	words := strings.TrimSpace(p.stderr.String())
	return words[max(0, len(words)-1000):]
}

// open starts the process again if it has ended, because an error in one workload need not occur in
// the next.
func (p *process) open(job string, j peer.Job) error {
	if p.ended {
		if err := p.start(); err != nil {
			return err
		}
	}
	_, err := p.ask("opened", "open %s %v", job, j)
	return err
}

func (p *process) run(job string, long time.Duration) (peer.Result, error) {
	before := processorTime(p.cmd.Process.Pid)
	answer, err := p.ask("ran", "run %s %d", job, long.Milliseconds())
	if err != nil {
		return peer.Result{}, err
	}
	used := processorTime(p.cmd.Process.Pid) - before
	r, err := peer.ParseResult(answer)
	if err == nil && used > 0 {
		r.Figures[report.Processor] = used.Seconds()
	}
	return r, err
}

// processorTime returns the processor time of the threads of a process, 0 where the system does not tell.
// A thread that ends takes its time with it.
func processorTime(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

func (p *process) close(job string) error {
	if p.ended {
		return nil
	}
	_, err := p.ask("closed", "close %s", job)
	return err
}

// peerGroup is all available peers.
type peerGroup struct {
	all     map[string]contender
	running []*process
	absent  []string // missing peers, with the reason
	scratch string
	profile string // file for docent's profile; "" for none
}

// names are those of all peers, in the order of the tables.
var names = []string{"floor", "docent", "curator", "kazoo", "zk.Lock", "etcd"}

// startPeers starts the peers. A peer that cannot be started is left out with the reason. Only
// docent and the floor are required.
func startPeers(ctx context.Context, profile string) (_ *peerGroup, err error) {
	c := &peerGroup{all: map[string]contender{}, profile: profile}
	defer func() {
		if err != nil {
			c.endAll()
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

func (c *peerGroup) start(name string, command []string) error {
	p, err := launch(name, command...)
	if err != nil {
		return err
	}
	c.all[name] = p
	c.running = append(c.running, p)
	return nil
}

func (c *peerGroup) command(name, self string) ([]string, error) {
	switch name {
	case "curator":
		classPath, err := peers.Compile(c.scratch, filepath.Join("java", "*.java"))
		if err != nil {
			return nil, err
		}
		return []string{"java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classPath, "Peer",
			known(peers.CuratorVersion())}, nil
	case "kazoo":
		python, err := peers.FindPython()
		return []string{python, "-B", filepath.Join("kazoo", "peer.py")}, err
	case "docent":
		return []string{self, "-peer", name, "-profile", c.profile}, nil
	}
	return []string{self, "-peer", name}, nil
}

// endAll ends all peers.
func (c *peerGroup) endAll() {
	for _, p := range c.running {
		_ = p.end()
	}
	_ = os.RemoveAll(c.scratch)
}

// versions returns the first lines of the peers.
func (c *peerGroup) versions() (all []string) {
	for _, p := range c.running {
		all = append(all, p.version)
	}
	return all
}
