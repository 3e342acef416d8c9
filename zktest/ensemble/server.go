package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	stopGrace = 10 * time.Second // from SIGTERM to SIGKILL
	killBound = 30 * time.Second // from SIGKILL to giving up
	attempts  = 5                // starts that may fail because a port was taken
)

var (
	// errPortTaken marks a failed start that may succeed when repeated.
	errPortTaken = errors.New("a port was taken by another process")
	// errDied marks a server with a process that ended without Stop or Kill.
	errDied = errors.New("the process ended by itself")
)

// Server is one server of an [Ensemble]. Its methods may be called from any goroutine.
type Server struct {
	id   int
	addr string
	dir  string // has zoo.cfg, server.log and data/
	java string
	args []string
	env  []string // besides that of this process

	mu     sync.Mutex
	proc   *process // nil unless started and not stopped since; it may have ended by itself
	paused bool
	closed bool // the ensemble is closed: nothing may be started any more
}

// ID returns the server's number in its ensemble, counted from 1: its myid.
func (s *Server) ID() int { return s.id }

// Addr returns the address, host:port, at which the server listens for clients. It never changes.
func (s *Server) Addr() string { return s.addr }

// Running reports whether the server's process exists. It may be paused, or not serving yet.
func (s *Server) Running() bool {
	p, _ := s.current()
	return p != nil && p.alive()
}

// Start starts a server that was stopped, killed or has died, with its old port and data. It
// returns when the process answers on its port, which it does before it serves. Without a quorum it
// never serves; [Ensemble.WaitReady] waits for that. If Start fails, no process is left. It returns
// an error if the server is running.
//
// While a server is down, the operating system may use its port for an outgoing connection. Start
// tries a few times to get it back.
func (s *Server) Start(ctx context.Context) error {
	var err error
	for range attempts {
		if err = s.startOnce(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return s.annotate(err)
}

func (s *Server) startOnce(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := s.launch()
	if err != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) (bool, error) { return s.listening(ctx, p) })
	if err != nil {
		return errors.Join(err, s.end(p, (*process).kill))
	}
	return nil
}

// launch starts the process without waiting for it.
func (s *Server) launch() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("its ensemble is closed")
	}
	if s.proc != nil && s.proc.alive() {
		return nil, errors.New("already running")
	}
	p, err := s.exec()
	if err != nil {
		return nil, err
	}
	s.proc, s.paused = p, false
	return p, nil
}

func (s *Server) exec() (*process, error) {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own handle, and this one wrote nothing
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.java, s.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.dir, log, log, childAttributes()
	if len(s.env) > 0 {
		cmd.Env = append(os.Environ(), s.env...)
	}
	return launch(cmd, info.Size())
}

// listening checks a server that was just started. It is done with an error if the server will
// never listen.
func (s *Server) listening(ctx context.Context, p *process) (bool, error) {
	if err := s.checkAlive(p); err != nil {
		return true, err
	}
	answer, err := s.ask(ctx, "ruok")
	return err == nil && answer == "imok", err
}

// checkAlive returns an error that explains the end of a process that should be running.
func (s *Server) checkAlive(p *process) error {
	if p.alive() {
		return nil
	}
	err := fmt.Errorf("%w: %s\n%s", errDied, p.ending(), s.tail(tailInErrors))
	if s.lostPort(p) {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// Stop asks the server to end, as an operator does, and waits for the end. A server that does not
// end within ten seconds is killed. A paused server is resumed first. Stop does nothing if the
// server is not running.
func (s *Server) Stop() error {
	return s.endCurrent(func(p *process) error { return p.terminate(stopGrace) })
}

// Kill ends the server at once, as a crash does, and waits until the process has ended. Then its
// connections are closed, and its data is what it had written. Kill does nothing if the server is
// not running.
func (s *Server) Kill() error {
	return s.endCurrent((*process).kill)
}

func (s *Server) endCurrent(how func(*process) error) error {
	p, _ := s.current()
	if p == nil {
		return nil
	}
	return s.annotate(s.end(p, how))
}

// end ends p and forgets it, so that its absence is expected from here on.
func (s *Server) end(p *process, how func(*process) error) error {
	if err := how(p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == p {
		s.proc, s.paused = nil, false
	}
	return nil
}

// close kills the server and prevents further starts.
func (s *Server) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.Kill()
}

// Pause stops the server's process, as a long garbage collection or a frozen machine does. Its
// sockets stay open, and the kernel goes on accepting connections and data for it, but it answers
// nothing until [Server.Resume]. On Linux the process has stopped when Pause returns; elsewhere it
// stops a moment later. The other servers of an ensemble drop it after syncLimit ticks. Pause does
// nothing if the server is paused.
func (s *Server) Pause() error { return s.freeze(true, pause) }

// Resume resumes a paused server. It first handles what has arrived meanwhile. A leader that was
// replaced meanwhile steps down, but may answer as a leader for a moment. Resume does nothing if
// the server is not paused.
func (s *Server) Resume() error { return s.freeze(false, resume) }

func (s *Server) freeze(paused bool, signal func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || !s.proc.alive() {
		return s.annotate(errors.New("not running"))
	}
	if s.paused == paused {
		return nil
	}
	if err := signal(s.proc.os); err != nil {
		return s.annotate(err)
	}
	s.paused = paused
	return nil
}

// Wipe removes the data, transactions and snapshots, of a server that is not running, so that it
// starts as if new. A member of an ensemble then copies everything from the leader. A standalone
// server has forgotten everything. Its zxid starts again below what clients have seen, so it
// refuses them until they open new sessions.
func (s *Server) Wipe() error {
	return s.whileDown("wipe", func() error {
		if err := os.RemoveAll(s.dataDir()); err != nil {
			return err
		}
		return writeFiles(s.dataDir(), map[string]string{"myid": strconv.Itoa(s.id)})
	})
}

// Backup copies the data, transactions and snapshots, of a server that is not running to a folder that
// does not exist yet.
func (s *Server) Backup(folder string) error {
	return s.whileDown("back up", func() error {
		if _, err := os.Stat(folder); err == nil {
			return fmt.Errorf("back up: %s: %w", folder, os.ErrExist)
		}
		return os.CopyFS(folder, os.DirFS(s.dataDir()))
	})
}

// Restore replaces the data of a server that is not running by that of a folder that Backup has
// written, and keeps the folder. A member of an ensemble then copies from the leader what it lacks.
//
// The other members must have all transactions to which this one has agreed since the backup, or else
// the ensemble can lose some. They have them once they have committed a transaction while this server
// was down, if no other member has lost data. That holds for [Server.Wipe], too.
func (s *Server) Restore(folder string) error {
	return s.whileDown("restore", func() error {
		if _, err := os.Stat(filepath.Join(folder, "myid")); err != nil {
			return err
		}
		if err := os.RemoveAll(s.dataDir()); err != nil {
			return err
		}
		return os.CopyFS(s.dataDir(), os.DirFS(folder))
	})
}

// whileDown calls change, which needs that the server does not run meanwhile.
func (s *Server) whileDown(what string, change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.alive() {
		return s.annotate(fmt.Errorf("cannot %s a running server", what))
	}
	return s.annotate(change())
}

func (s *Server) current() (p *process, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc, s.paused
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

// annotate adds the server to an error. It is called once, before the error is returned.
func (s *Server) annotate(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ensemble: server %d (%s): %w", s.id, s.addr, err)
}
