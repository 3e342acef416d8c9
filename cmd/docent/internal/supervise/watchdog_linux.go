package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// init makes this process a watchdog if docent has started it as one. It runs before anything else
// of the program, on a thread that lives as long as the process: the kernel kills the command when
// the thread that has started it ends.
func init() {
	if os.Args[0] != watchdogName {
		return
	}
	runtime.LockOSThread()
	s, ok := parseSettings(os.Args)
	if !ok {
		fmt.Fprintln(os.Stderr, watchdogName+": started by docent, and only by docent")
		os.Exit(1)
	}
	s.watch()
	os.Exit(0)
}

// notStarted is the status of a command that was not started, because the hold was about to end. It is
// that of a command that was killed.
const notStarted = syscall.WaitStatus(syscall.SIGKILL)

// watchdog is the parent of a command.
type watchdog struct {
	descendants descendants
	command     *os.Process
	group       int            // the process group of the command, if it has one of its own; else 0
	reports     *os.File       // to docent
	ended       chan os.Signal // receives a signal when a child has ended
	times       times
	warned      bool      // the command was told to end, because of the deadline
	asked       bool      // the command was told to end, because of a Request
	over        bool      // the command has ended, or was told to end what it has left running
	rest        moment    // the moment to kill what the command has left running; with over
	told        []process // that were told to end
	killed      bool      // because of the deadline
}

// watch runs the command until all its processes have ended.
func (s settings) watch() {
	syscall.CloseOnExec(s.orders)
	syscall.CloseOnExec(s.reports)
	// The name of the executable file is "exe". The kernel shows this one, so killall docent does
	// not reach the watchdog.
	_ = os.WriteFile("/proc/self/comm", []byte("lock-watchdog"), 0)
	w := &watchdog{reports: os.NewFile(uintptr(s.reports), "reports"), ended: make(chan os.Signal, 1)}
	// Signals for docent are passed on to the command by docent. They are caught and not ignored,
	// because the command would ignore them, too.
	Catch(make(chan os.Signal, 1))
	signal.Notify(w.ended, syscall.SIGCHLD)
	orders := receive[order](os.NewFile(uintptr(s.orders), "orders"))
	first, docentLives := <-orders
	if !docentLives || first.Times == nil {
		return
	}
	w.times = *first.Times
	if now().passed(w.times.Warn) { // docent was paused
		send(w.reports, report{Ended: true, Killed: true, Status: notStarted})
		return
	}
	if err := w.start(s); err != nil {
		failed := report{Failed: err.Error()}
		_ = errors.As(err, &failed.Errno)
		send(w.reports, failed)
		return
	}
	// On a busy machine the deadline must not pass while the watchdog waits for a processor. Only a
	// privileged process may do this. The watchdog is alone in its group.
	_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, -20)
	w.untilEnd(orders)
	var status syscall.WaitStatus
	_, _ = wait(w.command.Pid, 0, &status)
	send(w.reports, report{Ended: true, Killed: w.killed, Status: status})
}

// start starts the command.
func (w *watchdog) start(s settings) error {
	if err := adopt(); err != nil {
		return err
	}
	command, err := os.StartProcess(s.path, s.args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pgid: s.group, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	w.command = command
	if s.group == 0 {
		w.group = command.Pid
	}
	return nil
}

// untilEnd obeys orders until all processes of the command have ended. The command itself is left to
// be reaped.
func (w *watchdog) untilEnd(orders <-chan order) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !w.step() {
		timer.Reset(sleepUntil(w.next()))
		select {
		case o, docentLives := <-orders:
			orders = w.obey(orders, o, docentLives)
		case <-w.ended:
			if w.childEnded() {
				return
			}
		case <-timer.C:
		}
	}
}

// obey carries out an order. It returns the orders that follow, and nil after the last one.
func (w *watchdog) obey(orders <-chan order, o order, docentLives bool) <-chan order {
	switch {
	case !docentLives:
		w.times.Warn = now() // and no message: what reads standard error may not be reading
		return nil
	case o.Times != nil:
		w.times = *o.Times
	case !w.over:
		_ = w.command.Signal(o.Signal)
	}
	return orders
}

// step does what is due, and reports whether it has killed the command.
func (w *watchdog) step() (killed bool) {
	switch at := now(); {
	case at.passed(w.times.Kill), at.passed(w.times.Force), w.over && at.passed(w.rest):
		w.killed = at.passed(w.times.Kill)
		w.kill()
		return true
	case !w.warned && at.passed(w.times.Warn):
		w.warned = true
		w.tell()
		send(w.reports, report{Warned: true})
	case !w.asked && at.passed(w.times.Ask):
		w.asked = true
		w.tell()
	}
	return false
}

// childEnded notes which children have ended. It reports whether all processes of the command have.
func (w *watchdog) childEnded() (all bool) {
	ended := exited(w.command.Pid)
	others := w.descendants.reap(w.command.Pid) // now what the ended command has left are children, too
	if !w.over && ended {
		w.over, w.rest = true, now().add(w.times.Rest)
		if len(others) > 0 {
			w.tell()
		}
	}
	return w.over && len(others) == 0
}

// next returns the next moment at which something is due.
func (w *watchdog) next() moment {
	next := min(w.times.Kill, w.times.Force)
	if !w.warned {
		next = min(next, w.times.Warn)
	}
	if !w.asked {
		next = min(next, w.times.Ask)
	}
	if w.over {
		next = min(next, w.rest)
	}
	return next
}

// tell tells all processes of the command to end. Those that are stopped could not obey.
func (w *watchdog) tell() {
	w.told = w.descendants.list()
	signalAll(w.told, syscall.SIGTERM)
	signalAll(w.told, syscall.SIGCONT)
}

// kill kills all processes of the command.
func (w *watchdog) kill() {
	if w.group != 0 {
		// At once, and safe: the command is not reaped yet, so the number means its group.
		_ = syscall.Kill(-w.group, syscall.SIGKILL)
	}
	signalAll(w.told, syscall.SIGKILL) // most of them, before the search for all
	w.descendants.kill(w.command.Pid, w.ended)
}
