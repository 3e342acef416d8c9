package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Run runs a command until all its processes have ended, and returns how the command has ended. Run
// tells the command to end, by SIGTERM, when the deadline of the hold is near, and kills it before
// the deadline. What the command leaves running when it ends is told to end, too, and killed after
// the grace. Run passes signals on to the command, and obeys the request. It calls say with what a user
// should know.
//
// Run returns ErrWatchdog if something has killed the watchdog, and so the command. It returns
// ErrNotStarted, with the error of the system, if the command cannot be started.
//
// Only one Run may run at a time in a process. Meanwhile the process must start no other process.
func Run(
	c Command, hold Hold, l Limits, request Request, signals <-chan os.Signal, say func(string),
) (Ending, error) {
	if err := adopt(); err != nil {
		return Ending{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	r := &run{
		hold: hold, limits: l, request: request, say: say, times: never, terminal: hasTerminal(),
		children: make(chan os.Signal, 1),
	}
	for _, p := range r.descendants.children() {
		r.descendants.earlier = append(r.descendants.earlier, p.pid)
	}
	signal.Notify(r.children, syscall.SIGCHLD)
	defer signal.Stop(r.children)
	if err := r.start(c); err != nil {
		return Ending{}, fmt.Errorf("run %s: start the watchdog: %w", c.Path, err)
	}
	last := r.untilEnd(signals)
	// Normally only the watchdog is left. If it was killed, it has left what the command has started.
	r.descendants.kill(0, r.children)
	_ = r.orders.Close()
	for late := range r.reports { // they end with the watchdog
		if r.note(late); late.Ended {
			last = late
		}
	}
	_ = r.pipe.Close()
	return r.ending(last)
}

// run is docent's part of running one command.
type run struct {
	descendants descendants
	hold        Hold
	limits      Limits
	request     Request
	say         func(string)
	terminal    bool
	children    chan os.Signal // receives a signal when the state of the watchdog has changed
	watchdog    int            // its pid
	orders      *os.File       // to the watchdog
	pipe        *os.File       // of reports
	reports     <-chan report
	times       times // that the watchdog knows
	cut         bool  // the command was told to end, or killed, because of the deadline
	asked       bool  // it was told to end because of the request
}

// start starts the watchdog.
func (r *run) start(c Command) (err error) {
	var orders, reports [2]int
	if err := syscall.Pipe2(orders[:], syscall.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	if err := syscall.Pipe2(reports[:], syscall.O_CLOEXEC); err != nil {
		_, _ = syscall.Close(orders[0]), syscall.Close(orders[1])
		return os.NewSyscallError("pipe2", err)
	}
	theirs := []int{orders[0], reports[1]}
	r.orders, r.pipe = ours(orders[1], "orders"), ours(reports[0], "reports")
	defer func() {
		for _, fd := range theirs {
			_ = syscall.Close(fd)
		}
		if err != nil {
			_, _ = r.orders.Close(), r.pipe.Close()
		}
	}()
	s := settings{orders: theirs[0], reports: theirs[1], path: c.Path, args: c.Args}
	if r.terminal {
		s.group = syscall.Getpgrp()
	}
	for _, fd := range theirs {
		// Under the same number, so that files which docent has from its parent keep theirs.
		if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0); errno != 0 {
			return os.NewSyscallError("fcntl", errno)
		}
	}
	// In a process group of its own the watchdog is not stopped with docent, by a terminal or a shell.
	watchdog, err := os.StartProcess("/proc/self/exe", s.arguments(), &os.ProcAttr{
		Env: c.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return err
	}
	r.watchdog = watchdog.Pid
	r.reports = receive[report](r.pipe)
	return watchdog.Release() // descendants.kill reaps it
}

// ours returns the end of a pipe that this process keeps.
func ours(fd int, name string) *os.File {
	_ = syscall.SetNonblock(fd, true) // so that a write can have a deadline
	return os.NewFile(uintptr(fd), name)
}

// untilEnd tells the watchdog each new deadline, and returns its last report. That is the zero
// report if the watchdog has ended without one, or has not ended the command in time.
func (r *run) untilEnd(signals <-chan os.Signal) (last report) {
	ticker := time.NewTicker(r.limits.Interval)
	defer ticker.Stop()
	lost, asked := r.hold.Done(), r.request.Asked
	for {
		r.tellTimes()
		if now().passed(r.times.Kill.add(r.limits.Margin / 2)) {
			r.cut = true
			return report{}
		}
		select {
		case told, lives := <-r.reports:
			if !lives || told.Ended || told.Failed != "" {
				return told
			}
			r.note(told)
		case s := <-signals:
			if passedOn(s, r.terminal) {
				r.send(order{Signal: s.(syscall.Signal)})
			}
		case <-r.children:
			if stopped(r.watchdog) {
				_ = syscall.Kill(r.watchdog, syscall.SIGCONT)
			}
		case <-lost:
			lost = nil
		case <-asked:
			asked = nil
			r.answer()
		case <-ticker.C:
		}
	}
}

// note says what the watchdog has done because of the deadline.
func (r *run) note(told report) {
	if told.Warned {
		r.cut = true
		r.say("the lock is about to be lost: told the command to end")
	}
}

// answer obeys the request.
func (r *run) answer() {
	r.say(r.request.message())
	times := r.limits.timesAsked(r.request.Answer, r.times)
	if times != r.times {
		r.times, r.asked = times, true
		r.send(order{Times: &times})
	}
}

// precision is how much the times of a hold must change before the watchdog is told. Each reading of
// clocks has a slightly different result.
const precision = time.Millisecond

// tellTimes tells the watchdog the times of the hold, if they have changed.
func (r *run) tellTimes() {
	times := r.limits.timesOf(r.hold, r.times)
	if moved := r.times.Kill.until(times.Kill).Abs(); moved >= precision {
		r.times = times
		r.send(order{Times: &times})
	}
}

// send sends an order. A watchdog that does not read its orders for long takes the incomplete one
// for the end of docent.
func (r *run) send(o order) {
	_ = r.orders.SetWriteDeadline(time.Now().Add(r.limits.Margin))
	send(r.orders, o)
}

// ending returns what Run returns after the last report.
func (r *run) ending(last report) (Ending, error) {
	cut := r.cut || last.Killed
	switch {
	case last.Failed != "":
		return Ending{}, last.failure()
	case !last.Ended && !cut:
		return Ending{Code: killedCode}, ErrWatchdog
	case !last.Ended:
		return Ending{Code: killedCode, Cut: true, Asked: r.asked}, nil
	}
	return Ending{Code: codeOf(last.Status), Cut: cut, Asked: r.asked}, nil
}
