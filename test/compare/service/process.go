package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/docent-zk/docent/internal/port"
)

// errDead means that a server has ended by itself.
var errDead = errors.New("the server has ended")

// process is a server, in a folder that it starts from again.
type process struct {
	dir     string
	account string // that it runs as, if this process is root's; "" for its own
	command []string
	clock   *Clock // nil: that of the machine
	ports   ports  // that it listens on
	cmd     *exec.Cmd
	ended   chan struct{}
}

// folder makes a folder, in memory where there is room.
func folder(name string) (string, error) {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return os.MkdirTemp(shm, "docent-compare-"+name+"-")
	}
	return os.MkdirTemp("", "docent-compare-"+name+"-")
}

// credential returns what a process is run as.
func credential(account string) (*syscall.Credential, error) {
	if account == "" || os.Getuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own gives a folder to the account.
func own(dir, account string) error {
	c, err := credential(account)
	if c == nil {
		return err
	}
	return os.Chown(dir, int(c.Uid), int(c.Gid))
}

// prepare makes a command of this process's account and folder.
func (p *process) prepare(command []string) (*exec.Cmd, error) {
	c, err := credential(p.account)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.dir, append(os.Environ(), "TMPDIR="+p.dir), child(c)
	if p.clock != nil {
		cmd.Env = append(cmd.Env, p.clock.Env()...)
	}
	return cmd, err
}

// run runs a command to its end.
func (p *process) run(command ...string) error {
	cmd, err := p.prepare(command)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, tail(out))
	}
	return nil
}

func (p *process) log() string { return filepath.Join(p.dir, "log") }

func (p *process) start() error {
	cmd, err := p.prepare(p.command)
	if err != nil {
		return err
	}
	out, err := os.Create(p.log())
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait() // it is killed
		close(ended)
	}(p.ended)
	return nil
}

// alive returns the end of the output of a server that has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		out, _ := os.ReadFile(p.log())
		return fmt.Errorf("%w: %s", errDead, tail(out))
	default:
		return nil
	}
}

func tail(out []byte) string {
	words := strings.TrimSpace(string(out))
	return words[max(0, len(words)-800):]
}

// kill ends the server without a chance to write.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its children, too
	<-p.ended
	p.cmd = nil
}

// program returns the path of a program that may be outside of PATH.
func program(name, debianPackage string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		slices.Sort(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%s is not installed: apt-get install %s", name, debianPackage)
}

// ports are ports that no other process gets by chance, also while the server is down.
type ports []*port.Port

func takePorts(n int) (taken ports, err error) {
	for range n {
		one, err := port.New()
		if err != nil {
			taken.close()
			return nil, err
		}
		taken = append(taken, one)
	}
	return taken, nil
}

func (p ports) close() {
	for _, one := range p {
		one.Close()
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
