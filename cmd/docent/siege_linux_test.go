package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

// childrenOf returns the pids of the children of a process.
func childrenOf(t testing.TB, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, behind, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(behind); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// watchdog returns the pid of the watchdog of a docent whose command runs.
func (p *process) watchdog() int {
	p.t.Helper()
	children := childrenOf(p.t, p.cmd.Process.Pid)
	require.Len(p.t, children, 1)
	return children[0]
}

// signalWatchdog sends a signal to the watchdog, if the command still runs.
func (p *process) signalWatchdog(s syscall.Signal) {
	p.t.Helper()
	for _, pid := range childrenOf(p.t, p.cmd.Process.Pid) {
		_ = syscall.Kill(pid, s)
	}
}

// exitViolated is the exit code of a witness that finds another one alive.
const exitViolated = 99

// witness returns a command that holds the lock of a file as long as any of its processes lives.
// It ends at once if another witness lives.
func witness(file, script string) []string {
	conflict := strconv.Itoa(exitViolated)
	return []string{"flock", "--no-fork", "--nonblock", "--conflict-exit-code", conflict, file, "sh", "-c", script}
}

// stubborn is the script of a witness that ignores SIGTERM, and has a process that leaves its session.
const stubborn = `trap "" TERM; setsid sleep 1000 & echo held; sleep 1000`

// siege is one server, with a lock that is lost again and again.
type siege struct {
	server  testzk.Server
	network *proxy.Proxy // between the server and the holder
}

// try sends a signal to docent, if it still runs.
func (p *process) try(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// faults make a holder lose its lock. Each returns a function that undoes the fault, and the exit
// code of the holder.
var faults = []struct {
	name string
	make func(t testing.TB, s siege, holder *process) (undo func(), code int)
}{
	{"cut", func(_ testing.TB, s siege, _ *process) (func(), int) {
		s.network.Blackhole(true)
		return func() { s.network.Blackhole(false); s.network.DropConnections() }, exitLost
	}},
	{"docent paused", func(_ testing.TB, _ siege, holder *process) (func(), int) {
		holder.try(syscall.SIGSTOP)
		return func() { holder.try(syscall.SIGCONT) }, exitLost
	}},
	{"docent killed", func(_ testing.TB, _ siege, holder *process) (func(), int) {
		holder.try(syscall.SIGKILL)
		return func() {}, -1
	}},
	{"watchdog killed", func(_ testing.TB, _ siege, holder *process) (func(), int) {
		holder.signalWatchdog(syscall.SIGKILL)
		return func() {}, exitFailed
	}},
	{"watchdog paused", func(_ testing.TB, s siege, holder *process) (func(), int) {
		holder.signalWatchdog(syscall.SIGSTOP)
		s.network.Blackhole(true)
		return func() { s.network.Blackhole(false); s.network.DropConnections() }, exitLost
	}},
	{"server restarted", func(t testing.TB, s siege, holder *process) (func(), int) {
		s.server.Kill(t)
		holder.wait()
		s.server.Start(t)
		return func() {}, exitLost
	}},
}

// timeout is the session timeout in sieges. It is short, so that there are many rounds. A busy machine
// can lose such a session without a fault.
const timeout = "4s"

// round runs a witness under a lock, makes a fault, and waits for another witness under the lock. It
// reports whether that one has found the first one dead.
func (s siege) round(t testing.TB, number int) (dead bool) {
	fault := faults[number%len(faults)]
	path, file := testzk.Path(t), filepath.Join(t.TempDir(), "witness")
	holder := s.hold(t, path, file)
	next := s.next(t, path, file)
	undo, want := fault.make(t, s, holder)
	code := next.wait()
	for code == exitLost || code == exitNoServers {
		code = s.next(t, path, file).wait()
	}
	undo()
	require.Contains(t, []int{0, exitViolated}, code, "%s: %s", fault.name, &next.errs)
	require.Contains(t, []int{want, exitLost}, holder.wait(), "%s: %s", fault.name, &holder.errs)
	require.NoError(t, exec.Command("flock", "--nonblock", file, "true").Run(), "%s: a process is left", fault.name)
	return code == 0
}

// hold runs the witness that is to lose the lock.
func (s siege) hold(t testing.TB, path, file string) *process {
	t.Helper()
	for {
		holder := start(t, append([]string{
			"--connect", s.network.Addr(), "--session-timeout", timeout, "lock", path, "--",
		}, witness(file, stubborn)...)...)
		line, err := holder.tryLine()
		if err == nil {
			require.Equal(t, "held", line)
			return holder
		}
		require.Contains(t, []int{exitLost, exitNoServers}, holder.wait(), &holder.errs)
	}
}

// next starts the witness that is to have the lock next.
func (s siege) next(t testing.TB, path, file string) *process {
	t.Helper()
	return start(t, append([]string{
		"--connect", s.server.Connect(), "--session-timeout", timeout, "lock", path, "--",
	}, witness(file, "echo next")...)...)
}

// TestACommandIsDeadBeforeTheNextHolderStarts makes as many holders lose their locks as DOCENT_ROUNDS
// says.
func TestACommandIsDeadBeforeTheNextHolderStarts(t *testing.T) {
	rounds, workers := 2*len(faults), 12
	if wanted := os.Getenv("DOCENT_ROUNDS"); wanted != "" {
		var err error
		rounds, err = strconv.Atoi(wanted)
		require.NoError(t, err)
	}
	if realzk.Wanted() != "" {
		workers = 3
	}
	var next, dead atomic.Int64
	t.Run("rounds", func(t *testing.T) {
		for range workers {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				server := testzk.Own(t, testzk.Seldom)
				s := siege{server, proxy.Start(t, server.Connect())}
				for number := next.Add(1) - 1; number < int64(rounds); number = next.Add(1) - 1 {
					t.Run(strconv.FormatInt(number, 10), func(t *testing.T) {
						require.True(t, s.round(t, int(number)), "the command of the former holder lives")
						dead.Add(1)
					})
				}
			})
		}
	})
	t.Logf("the command was dead before the next holder started: %d of %d", dead.Load(), rounds)
	require.EqualValues(t, rounds, dead.Load())
}
