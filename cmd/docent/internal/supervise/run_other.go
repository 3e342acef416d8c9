//go:build !linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Run runs a command and returns how it has ended. Run tells the command to end when the deadline of
// the hold is near, and kills it before the deadline. On Unix that includes its process group. Run
// passes signals on to the command. It calls say with what a user should know. Run returns an error
// if the command cannot be started.
//
// On this system nothing ends the command in time while this process is paused, or when it is
// killed.
func Run(c Command, hold Hold, l Limits, signals <-chan os.Signal, say func(string)) (Ending, error) {
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Args, Env: c.Env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	group := newGroup(cmd)
	if now().passed(l.timesOf(hold, never).Warn) {
		return Ending{Code: killedCode, Cut: true}, nil
	}
	if err := cmd.Start(); err != nil {
		return Ending{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command
	cut := false
	ticker := time.NewTicker(l.Interval)
	defer ticker.Stop()
	lost := hold.Done()
	for known, warned, killed := never, false, false; ; {
		known = l.timesOf(hold, known)
		switch at := now(); {
		case at.passed(known.Kill) && !killed:
			killed, cut = true, true
			group.kill()
		case at.passed(known.Warn) && !warned:
			warned, cut = true, true
			say("the lock is about to be lost: told the command to end")
			group.terminate()
		}
		select {
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return Ending{}, fmt.Errorf("wait for the command: %w", err)
			}
			group.sweep()
			return group.ending(cmd.ProcessState, cut), nil
		case s := <-signals:
			group.pass(s)
		case <-lost:
			lost = nil
		case <-ticker.C:
		}
	}
}
