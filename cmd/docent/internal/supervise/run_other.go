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
// passes signals on to the command, and obeys the request. It calls say with what a user should know.
// Run returns an error if the command cannot be started.
//
// On this system nothing ends the command in time while this process is paused, or when it is
// killed.
func Run(
	c Command, hold Hold, l Limits, request Request, signals <-chan os.Signal, say func(string),
) (Ending, error) {
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
	ticker := time.NewTicker(l.Interval)
	defer ticker.Stop()
	lost, asked := hold.Done(), request.Asked
	var ending Ending
	for known, warned, killed := never, false, false; ; {
		known = l.timesOf(hold, known)
		switch at := now(); {
		case at.passed(min(known.Kill, known.Force)) && !killed:
			killed, ending.Cut = true, ending.Cut || at.passed(known.Kill)
			group.kill()
		case at.passed(known.Warn) && !warned:
			warned, ending.Cut = true, true
			say("the lock is about to be lost: told the command to end")
			group.terminate()
		case at.passed(known.Ask) && !ending.Asked:
			ending.Asked = true
			group.terminate()
		}
		select {
		case err := <-ended:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return Ending{}, fmt.Errorf("wait for the command: %w", err)
			}
			group.sweep()
			ending.Code = group.code(cmd.ProcessState)
			return ending, nil
		case s := <-signals:
			group.pass(s)
		case <-lost:
			lost = nil
		case <-asked:
			asked = nil
			say(request.message())
			known = l.timesAsked(request.Answer, known)
		case <-ticker.C:
		}
	}
}
