package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/cmd/docent/internal/supervise"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

// hold is a recipes.Hold or a leader.Term.
type hold interface {
	supervise.Hold
	Err() error
	Token() int64
	Path() string
	Revoked() <-chan struct{}
}

// runner runs the command of the command line under holds.
type runner struct {
	client  *framework.Client
	path    string // of the lock
	command supervise.Command
	grace   time.Duration // 0: the default
	answer  supervise.Answer
	signals *relay
	errs    io.Writer
}

// newRunner looks for the command, and for errors in the command line. There is no client yet.
func newRunner(c *cli.Command, command []string) (*runner, error) {
	switch {
	case c.Args().Len() > 1 && len(command) == 0:
		return nil, usagef("write the command behind --: %s %s -- %s: see %s --help",
			c.FullName(), c.Args().First(), strings.Join(c.Args().Tail(), " "), c.FullName())
	case c.Args().Len() != 1:
		return nil, usagef("want one path, and a command behind --: see %s --help", c.FullName())
	case len(command) == 0:
		return nil, usagef("no command: write it behind --, as in %s %s -- command: see %s --help",
			c.FullName(), c.Args().First(), c.FullName())
	}
	if err := framework.CheckPath(c.Args().First()); err != nil {
		return nil, usageError{err}
	}
	answer := supervise.Answer(c.String("on-revoke"))
	if !slices.Contains(answers, answer) {
		return nil, usagef("--on-revoke %q: want one of %s", answer, join(answers))
	}
	path, err := exec.LookPath(command[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, coded{fmt.Errorf("%s: permission denied", command[0]), exitNotStartable}
	case err != nil:
		return nil, coded{fmt.Errorf("%s: command not found", command[0]), exitNotFound}
	}
	return &runner{
		path: c.Args().First(), command: supervise.Command{Path: path, Args: command}, grace: c.Duration("grace"),
		answer: answer, errs: c.Root().ErrWriter,
	}, nil
}

// answers are the values of --on-revoke.
var answers = []supervise.Answer{supervise.Ignore, supervise.Term, supervise.Kill}

// runnerFlags returns the flags of all commands that run another one.
func runnerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "on-revoke",
			Usage: "the `ANSWER` to a client that asks for the lock: term (SIGTERM), kill (SIGKILL, too, after the " +
				"grace) or ignore",
			Value: string(supervise.Term),
		},
		&cli.DurationFlag{
			Name:        "grace",
			Usage:       "the `TIME` from SIGTERM to SIGKILL when the lock is about to be lost",
			DefaultText: "a sixth of the session timeout",
		},
	}
}

// connect makes the client.
func (r *runner) connect(c *cli.Command) (err error) {
	if r.grace < 0 {
		return usagef("--grace %v: want a time that is not negative", r.grace)
	}
	if r.client, err = newClient(c); err != nil {
		return err
	}
	if err := r.checkGrace(c.Duration("session-timeout")); err != nil {
		_ = r.client.Close()
		return err
	}
	return nil
}

// checkGrace returns an error if the grace is too long for a session timeout.
func (r *runner) checkGrace(timeout time.Duration) error {
	if most := supervise.LongestGrace(timeout); r.grace > most {
		return usagef("--grace %v is longer than %v, a third of the session timeout", r.grace, most)
	}
	return nil
}

// commandPrefix begins the process in the identity of docent lock and docent elect.
const commandPrefix = "docent:"

// identity returns the data of lock nodes, by which other clients recognize this process.
func (r *runner) identity() []byte {
	host, _ := os.Hostname()
	id := recipes.Identity{Host: host, Process: commandPrefix + filepath.Base(r.command.Path), PID: os.Getpid()}
	data, _ := json.Marshal(id) // never an error
	return data
}

// errAsked is the error if the lock was acquired, and another client had asked for it before the command
// was started.
var errAsked = coded{errors.New("another client has asked for the lock: the command was not started"), exitNotAcquired}

// request returns how to answer a request for the release of a hold.
func (r *runner) request(h hold) supervise.Request {
	what := "the release of " + r.path + " (docent revoke)"
	return supervise.Request{Asked: h.Revoked(), What: what, Answer: r.answer}
}

// isAsked reports whether another client has asked for the release of a hold, and is to be answered.
func (r *runner) isAsked(h hold) bool {
	select {
	case <-h.Revoked():
		return r.answer != supervise.Ignore
	default:
		return false
	}
}

// under runs the command under a hold. It returns how the command has ended.
func (r *runner) under(ctx context.Context, h hold) (supervise.Ending, error) {
	signals := r.signals.begin()
	if ctx.Err() != nil { // a signal has ended the wait just when it had succeeded, or the hold has ended
		return supervise.Ending{}, context.Cause(ctx)
	}
	session, err := r.client.Session(ctx)
	if err != nil {
		return supervise.Ending{}, err
	}
	timeout := session.Timeout()
	if err := r.checkGrace(timeout); err != nil {
		return supervise.Ending{}, fmt.Errorf("%w that the servers grant", err)
	}
	limits := supervise.LimitsFor(timeout, r.grace)
	command := r.command
	command.Env = append(os.Environ(),
		"DOCENT_PATH="+r.path,
		"DOCENT_NODE="+h.Path(),
		"DOCENT_TOKEN="+strconv.FormatInt(h.Token(), 10),
		"DOCENT_SESSION="+fmt.Sprintf("0x%x", session.ID()),
		"DOCENT_SESSION_TIMEOUT_MS="+strconv.FormatInt(timeout.Milliseconds(), 10),
		"DOCENT_GRACE_MS="+strconv.FormatInt(limits.Grace.Milliseconds(), 10),
	)
	if r.isAsked(h) { // while it waited
		return supervise.Ending{}, errAsked
	}
	ending, err := supervise.Run(command, h, limits, r.request(h), signals, r.say)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ending, coded{err, exitNotFound}
	case errors.Is(err, supervise.ErrNotStarted):
		return ending, coded{err, exitNotStartable}
	}
	return ending, err
}

// say tells the user something.
func (r *runner) say(message string) { _, _ = fmt.Fprintln(r.errs, "docent:", message) }

// outcome returns the exit code of docent, or an error that has one. It takes what under has returned,
// and why the hold had ended then, or nil.
func outcome(ending supervise.Ending, err, lost error) (code int, _ error) {
	switch {
	case lost != nil && !errors.Is(err, supervise.ErrWatchdog):
		return 0, coded{fmt.Errorf("the lock was lost before the command had ended: %w", lost), exitLost}
	case err != nil:
		return 0, err
	case ending.Cut:
		return 0, coded{errors.New("the lock was about to be lost: the command was told to end"), exitLost}
	}
	return ending.Code, nil
}
