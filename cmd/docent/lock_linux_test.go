package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/cmd/docent/internal/supervise"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/proxy"
)

// connected returns arguments of docent, with those that connect it to the servers of the tests.
func connected(args ...string) []string {
	return append([]string{"--connect", testzk.Connect(), "--session-timeout", "20s"}, args...)
}

// holding starts docent with a command that holds a lock until docent gets SIGTERM.
func holding(t testing.TB, path string, flags ...string) *process {
	t.Helper()
	args := append(connected("lock"), flags...)
	p := start(t, append(args, path, "--", "sh", "-c", "echo held; sleep 1000 & wait")...)
	require.Equal(t, "held", p.line())
	return p
}

func TestACommandHasFilesAndEnvironment(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	cmd := docent(connected("lock", path, "--", "sh", "-c", `
		read line; echo "in $line"; echo "on fd 3: $(cat <&3)"; echo err >&2
		for name in PATH NODE TOKEN SESSION SESSION_TIMEOUT_MS GRACE_MS; do eval "echo $name=\$DOCENT_$name"; done
		exit 7`)...)
	cmd.Stdin = strings.NewReader("hello\n")
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.WriteString("passed on")
	require.NoError(t, err)
	_, err = file.Seek(0, 0)
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{file}
	code, out, errs := finishCommand(t, cmd)
	assert.Equal(t, 7, code)
	assert.Equal(t, "err\n", errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 8, out)
	assert.Equal(t, []string{"in hello", "on fd 3: passed on", "PATH=" + path}, lines[:3])
	assert.Regexp(t, "^NODE="+path+"/_c_[-0-9a-f]{36}-lock-[0-9]{10}$", lines[3])
	assert.Regexp(t, "^TOKEN=[1-9][0-9]*$", lines[4])
	assert.Regexp(t, "^SESSION=0x[0-9a-f]+$", lines[5])
	assert.Equal(t, []string{"SESSION_TIMEOUT_MS=20000", "GRACE_MS=3333"}, lines[6:])
}

func TestACommandHasNoFilesOfDocent(t *testing.T) {
	t.Parallel()
	code, with, errs := finish(t, connected("lock", testzk.Path(t), "--", "ls", "/proc/self/fd")...)
	require.Zero(t, code, errs)
	_, without, _ := finishCommand(t, exec.Command("ls", "/proc/self/fd"))
	assert.Equal(t, without, with)
}

func TestACommandHasThePriorityOfDocent(t *testing.T) {
	t.Parallel()
	code, with, errs := finish(t, connected("lock", testzk.Path(t), "--", "nice")...)
	require.Zero(t, code, errs)
	_, without, _ := finishCommand(t, exec.Command("nice"))
	assert.Equal(t, without, with)
}

func TestTokensGrow(t *testing.T) {
	t.Parallel()
	path, last := testzk.Path(t), int64(0)
	for _, flags := range [][]string{nil, nil, {"--limit", "2", "--permits", "2"}, {"--limit", "2"}} {
		lock := path + strconv.Itoa(len(flags))
		args := append(append(connected("lock"), flags...), lock, "--", "sh", "-c", "echo $DOCENT_TOKEN")
		code, out, errs := finish(t, args...)
		require.Zero(t, code, errs)
		token, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		require.NoError(t, err)
		require.Greater(t, token, last)
		last = token
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	holding(t, path)
	shared := testzk.Path(t)
	holding(t, shared, "--limit", "3")
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/nonexistent/interpreter\n"), 0o700))
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	denied := testzk.Path(t)
	observer := testzk.Observer(t)
	_, err := observer.Create(filepath.Dir(denied), nil, 0, zk.DigestACL(zk.PermAll, "user", "secret"))
	require.NoError(t, err)
	free, reading := testzk.Path(t), testzk.Path(t) // locks of two kinds on one path cause a warning
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"success":                {connected("lock", free, "--", "true"), 0},
		"failure":                {connected("lock", free, "--", "false"), 1},
		"highest":                {connected("lock", free, "--", "sh", "-c", "exit 255"), 255},
		"killed":                 {connected("lock", free, "--", "sh", "-c", "kill -KILL $$"), 137},
		"terminated":             {connected("lock", free, "--", "sh", "-c", "kill -TERM $$"), 143},
		"no such command":        {connected("lock", free, "--", "no-such-command"), 127},
		"no such file":           {connected("lock", free, "--", "/nonexistent/file"), 127},
		"no interpreter":         {connected("lock", free, "--", script), 127},
		"not executable":         {connected("lock", free, "--", plain), 126},
		"another limit":          {connected("lock", "--limit", "2", shared, "--", "true"), 64},
		"held":                   {connected("lock", "-n", path, "--", "true"), 75},
		"held for long":          {connected("lock", "-w", "10s", path, "--", "true"), 75},
		"held, no wait":          {connected("lock", "-w", "0", path, "--", "true"), 75},
		"held, another code":     {connected("lock", "-n", "-E", "0", path, "--", "true"), 0},
		"no server":              {[]string{"--connect", "127.0.0.1:1", "lock", "-w", "100ms", path, "--", "true"}, 69},
		"no permission":          {connected("lock", denied, "--", "true"), 77},
		"flags behind the path":  {connected("lock", reading, "-n", "--shared", "--", "true"), 0},
		"dashes for the command": {connected("lock", free, "--", "sh", "-c", `[ "$1" = -- ]`, "sh", "--"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, errs := finish(t, test.args...)
			assert.Equal(t, test.want, code, errs)
			if test.want > 1 && test.want < 128 {
				assert.True(t, strings.HasPrefix(errs, "docent: "), errs)
			}
		})
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "ALRM": syscall.SIGALRM, "WINCH": syscall.SIGWINCH,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, connected("lock", testzk.Path(t), "--", "sh", "-c",
				fmt.Sprintf(`trap "echo got %s; exit 5" %s; echo ready; while :; do sleep 0.01; done`, name, name))...)
			require.Equal(t, "ready", p.line())
			p.signal(s)
			assert.Equal(t, "got "+name, p.line())
			assert.Equal(t, 5, p.wait())
		})
	}
}

func TestASignalThatACommandDoesNotCatchEndsIt(t *testing.T) {
	t.Parallel()
	p := holding(t, testzk.Path(t))
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.wait())
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	cmd := docent(connected("lock", testzk.Path(t), "--", "sh", "-c", `kill -HUP $$; echo "not ended"`)...)
	cmd.Path, cmd.Args = "/usr/bin/nohup", append([]string{"nohup", cmd.Path}, cmd.Args[1:]...)
	code, out, errs := finishCommand(t, cmd)
	assert.Zero(t, code, errs)
	assert.Equal(t, "not ended\n", out)
}

func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			path := testzk.Path(t)
			holding(t, path)
			waiter := start(t, connected("lock", path, "--", "echo", "not run")...)
			observer := testzk.Observer(t)
			waits := func() bool {
				children, _, err := observer.Children(path)
				return err == nil && len(children) == 2
			}
			testzk.Eventually(t, waits, "nothing waits")
			waiter.signal(s)
			assert.Equal(t, 128+int(s), waiter.wait(), &waiter.errs)
			testzk.Eventually(t, func() bool { return !waits() }, "the waiter's node is left")
		})
	}
}

func TestLocksOfEachKind(t *testing.T) {
	t.Parallel()
	two := []string{"--limit", "2"}
	twoAtOnce, oneOfTwo := append(two, "--permits", "2"), append([]string{"-n"}, two...)
	for name, test := range map[string]struct {
		first, with, without []string // flags of a holder, and of those that may hold the lock with it and may not
	}{
		"mutex":         {nil, nil, []string{"-n"}},
		"readers":       {[]string{"--shared"}, []string{"-n", "-s"}, []string{"-n", "-x"}},
		"writer":        {[]string{"-x"}, nil, []string{"-n", "--shared"}},
		"semaphore":     {two, oneOfTwo, append([]string{"-n"}, twoAtOnce...)},
		"whole permits": {twoAtOnce, nil, oneOfTwo},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := testzk.Path(t)
			holding(t, path, test.first...)
			if test.with != nil {
				code, _, errs := finish(t, append(append(connected("lock"), test.with...), path, "--", "true")...)
				assert.Zero(t, code, errs)
			}
			code, _, errs := finish(t, append(append(connected("lock"), test.without...), path, "--", "true")...)
			assert.Equal(t, exitNotAcquired, code, errs)
		})
	}
}

func TestParticipantsShowTheCommand(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := holding(t, path)
	mu, err := mutex.New(testzk.Client(t, testzk.Connect()), path)
	require.NoError(t, err)
	all, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotNil(t, all[0].Identity)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, host, all[0].Identity.Host)
	assert.Equal(t, "docent:sh", all[0].Identity.Process)
	assert.Equal(t, p.cmd.Process.Pid, all[0].Identity.PID)
}

func TestTheLockIsReleasedWhenTheCommandHasEnded(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	code, _, errs := finish(t, connected("lock", path, "--", "true")...)
	require.Zero(t, code, errs)
	testzk.Empty(t, path)
}

func TestWhatACommandLeavesRunningIsEnded(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]string{
		"in its group": "sleep 1000 &", "in a session of its own": "setsid sleep 1000 &",
		"grandchild": "sh -c 'sleep 1000 & setsid sleep 1000 &'", "stopped": "sleep 1000 & kill -STOP $!",
		"ignores SIGTERM": `(trap "" TERM; exec sleep 1000) &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "witness")
			args := connected("lock", "--grace", "100ms", testzk.Path(t), "--")
			code, _, errs := finish(t, append(args, witness(file, leave+"\nexit 3")...)...)
			assert.Equal(t, 3, code, errs)
			code, _, errs = finish(t, append(connected("lock", testzk.Path(t), "--"), witness(file, "exit 4")...)...)
			assert.Equal(t, 4, code, "a process is left: %s", errs)
		})
	}
}

func TestWhatACommandLeavesRunningIsToldToEnd(t *testing.T) {
	t.Parallel()
	p := start(t, connected("--session-timeout", "60s", "lock", "--grace", "20s", testzk.Path(t), "--", "sh", "-c", `
		setsid sh -c 'trap "echo told; exit" TERM; echo ready; while :; do sleep 0.01; done' &
		while ! [ -e "$0" ]; do sleep 0.01; done; exit 3`, t.TempDir()+"/go")...)
	require.Equal(t, "ready", p.line())
	require.NoError(t, os.WriteFile(p.cmd.Args[len(p.cmd.Args)-1], nil, 0o600))
	assert.Equal(t, "told", p.line())
	assert.Equal(t, 3, p.wait())
}

// cutOff starts docent behind a network, runs a script under a lock, waits for the line "held", and
// cuts the network.
func cutOff(t *testing.T, script string) *process {
	t.Helper()
	network := proxy.Start(t, strings.Split(testzk.Connect(), ",")[0])
	p := graceful(t, network.Addr(), script)
	network.Blackhole(true)
	return p
}

// graceTimeout is the session timeout of graceful, and grace the time for the command.
const (
	graceTimeout = 18 * time.Second
	grace        = graceTimeout / 3
)

// graceful starts docent with a script that has time to end, also on a busy machine. It waits for the line
// "held".
func graceful(t *testing.T, connect, script string) *process {
	t.Helper()
	require.Equal(t, supervise.LongestGrace(graceTimeout), grace)
	p := start(t, "--connect", connect, "--session-timeout", graceTimeout.String(),
		"lock", "--grace", grace.String(), testzk.Path(t), "--", "sh", "-c", script)
	require.Equal(t, "held", p.line())
	return p
}

// untilTold is a script that ends when it is told to.
const untilTold = `trap "echo told; exit 0" TERM; echo held; while :; do sleep 0.01; done`

func TestACommandIsToldBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	p := cutOff(t, untilTold)
	assert.Equal(t, "told", p.line())
	assert.Equal(t, exitLost, p.wait())
	assert.Contains(t, p.errs.String(), "docent: the lock is about to be lost: told the command to end\n")
}

// docent finds the time to kill over before it reads what the watchdog has reported.
func TestAPausedDocentSaysThatTheCommandWasTold(t *testing.T) {
	t.Parallel()
	p := graceful(t, testzk.Connect(), untilTold)
	p.signal(syscall.SIGSTOP)
	assert.Equal(t, "told", p.line())
	limits := supervise.LimitsFor(graceTimeout, grace)
	time.Sleep(limits.Grace + limits.Margin)
	p.signal(syscall.SIGCONT)
	assert.Equal(t, exitLost, p.wait())
	assert.Contains(t, p.errs.String(), "docent: the lock is about to be lost: told the command to end\n")
}

func TestAStoppedCommandIsToldToo(t *testing.T) {
	t.Parallel()
	p := cutOff(t, `trap "echo told; exit 0" TERM; echo held; kill -STOP $$; while :; do sleep 0.01; done`)
	assert.Equal(t, "told", p.line())
	assert.Equal(t, exitLost, p.wait())
}

func TestACommandIsKilledWhenItsLockNodeIsDeleted(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := start(t, connected("lock", path, "--", "sh", "-c", `trap "" TERM; echo $DOCENT_NODE; sleep 1000`)...)
	require.NoError(t, testzk.Observer(t).Delete(p.line(), -1))
	assert.Equal(t, exitLost, p.wait())
	assert.Contains(t, p.errs.String(), "docent: the lock was lost before the command had ended: ")
}

func TestTheKernelKillsTheCommandOfAKilledWatchdog(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]syscall.Signal{"paused": syscall.SIGSTOP, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, connected("lock", testzk.Path(t), "--", "sh", "-c", "echo $$; exec sleep 1000")...)
			pid, watchdog := p.line(), p.watchdog()
			p.signal(before)
			if err := syscall.Kill(watchdog, syscall.SIGKILL); before != syscall.SIGKILL {
				require.NoError(t, err) // the watchdog of a docent that was killed may have ended
			}
			testzk.Eventually(t, func() bool {
				status, err := os.ReadFile("/proc/" + pid + "/status")
				return err != nil || strings.Contains(string(status), "State:\tZ")
			}, "the command lives")
		})
	}
}

func TestAStoppedWatchdogIsContinued(t *testing.T) {
	t.Parallel()
	p := holding(t, testzk.Path(t))
	watchdog := p.watchdog()
	before, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", watchdog))
	require.NoError(t, err)
	require.Contains(t, string(before), "Name:\tlock-watchdog\n")
	for range 10 {
		require.NoError(t, syscall.Kill(watchdog, syscall.SIGSTOP))
	}
	testzk.Eventually(t, func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", watchdog))
		return err == nil && !strings.Contains(string(status), "State:\tT")
	}, "the watchdog is stopped")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, p.wait())
}

func TestDocentEndsACommandWhoseWatchdogDoesNot(t *testing.T) {
	t.Parallel()
	network := proxy.Start(t, strings.Split(testzk.Connect(), ",")[0])
	file := filepath.Join(t.TempDir(), "witness")
	args := []string{"--connect", network.Addr(), "--session-timeout", "12s", "lock", testzk.Path(t), "--"}
	p := start(t, append(args, witness(file, stubborn)...)...)
	require.Equal(t, "held", p.line())
	runtime.LockOSThread() // only this thread may continue the watchdog, and does not
	defer runtime.UnlockOSThread()
	watchdog := p.watchdog()
	require.NoError(t, syscall.PtraceAttach(watchdog))
	network.Blackhole(true)
	overdue := time.AfterFunc(testzk.Patience, func() { _ = syscall.Kill(watchdog, syscall.SIGKILL) })
	for status := syscall.WaitStatus(0); !status.Signaled(); { // it is stopped, and then killed
		_, err := syscall.Wait4(watchdog, &status, 0, nil)
		require.NoError(t, err)
	}
	assert.True(t, overdue.Stop(), "docent does not kill the watchdog")
	assert.Equal(t, exitLost, p.wait())
	assert.NoError(t, exec.Command("flock", "--nonblock", file, "true").Run(), "a process is left")
}

func TestSignalsForTheWatchdogDoNotEndIt(t *testing.T) {
	t.Parallel()
	p := holding(t, testzk.Path(t))
	for _, s := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
	} {
		require.NoError(t, syscall.Kill(p.watchdog(), s))
	}
	p.signal(syscall.SIGUSR1)
	assert.Equal(t, 128+int(syscall.SIGUSR1), p.wait())
}

func TestAGraceThatIsTooLongForTheGrantedTimeoutIsRefused(t *testing.T) {
	t.Parallel()
	code, _, errs := finish(t, "--connect", testzk.Connect(), "--session-timeout", "23h", "lock", "--grace", "5h",
		testzk.Path(t), "--", "echo", "not run")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "docent: --grace 5h0m0s is longer than ")
}
