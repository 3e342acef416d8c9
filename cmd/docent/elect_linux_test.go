package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest/proxy"
)

// leads is a script that leads until it gets SIGTERM.
const leads = "echo leads; sleep 1000 & wait"

func TestOneCandidateLeadsAfterAnother(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	first := start(t, connected("elect", path, "--", "sh", "-c", leads)...)
	require.Equal(t, "leads", first.line())
	second := start(t, connected("elect", path, "--", "sh", "-c", leads)...)
	election, err := leader.New(testzk.Client(t, testzk.Connect()), path)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		all, err := election.Participants(testzk.Context(t))
		return err == nil && len(all) == 2 && all[0].Identity != nil && all[0].Identity.PID == first.cmd.Process.Pid
	}, "there are not two candidates, the first one leading")
	first.signal(syscall.SIGTERM)
	assert.Equal(t, 128+15, first.wait())
	assert.Equal(t, "leads", second.line())
	second.signal(syscall.SIGINT)
	assert.Equal(t, 128+2, second.wait())
}

func TestACandidateStandsAgainAfterItsCommand(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"success": "exit 0", "failure": "exit 3", "killed": "kill -KILL $$"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, connected("elect", testzk.Path(t), "--", "sh", "-c", "echo $DOCENT_TOKEN; "+end)...)
			last := ""
			for range 3 {
				token := p.line()
				assert.NotEqual(t, last, token)
				last = token
			}
			p.signal(syscall.SIGTERM)
			p.wait()
		})
	}
}

func TestOnceEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	args := connected("elect", "--once", testzk.Path(t), "--", "sh", "-c", "echo leads; exit 9")
	code, out, errs := finish(t, args...)
	assert.Equal(t, 9, code, errs)
	assert.Equal(t, "leads\n", out)
}

func TestACommandThatCannotBeStartedEndsTheCandidate(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	writeFile(t, script, "#!/nonexistent/interpreter\n", 0o700)
	code, _, errs := finish(t, connected("elect", testzk.Path(t), "--", script)...)
	assert.Equal(t, exitNotFound, code)
	assert.Contains(t, errs, "docent: cannot start the command: no such file or directory\n")
}

func TestASignalEndsACandidateThatWaits(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]string{"for its election": testzk.Connect(), "for a server": "127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := testzk.Path(t)
			first := start(t, connected("elect", path, "--", "sh", "-c", leads)...)
			require.Equal(t, "leads", first.line())
			p := start(t, "--verbose", "--connect", connect, "elect", path, "--", "echo", "not run")
			started := func() bool { return strings.Contains(p.errs.String(), "level=DEBUG") }
			testzk.Eventually(t, started, "docent does nothing")
			p.signal(syscall.SIGTERM)
			assert.Equal(t, 128+15, p.wait(), &p.errs)
		})
	}
}

func TestALostTermEndsTheCommandAndTheNextOneStartsIt(t *testing.T) {
	t.Parallel()
	network := proxy.Start(t, strings.Split(testzk.Connect(), ",")[0])
	file := filepath.Join(t.TempDir(), "witness")
	p := start(t, append([]string{
		"--connect", network.Addr(), "--session-timeout", "4s", "elect", testzk.Path(t), "--",
	}, witness(file, stubborn)...)...)
	require.Equal(t, "held", p.line())
	losses := func() int {
		errs := p.errs.String()
		return strings.Count(errs, "docent: the lock was lost before the command had ended: ") +
			strings.Count(errs, "docent: the lock was about to be lost")
	}
	before := losses() // on a slow machine
	network.Blackhole(true)
	testzk.Eventually(t, func() bool { return losses() > before }, "the term is not lost")
	network.Blackhole(false)
	network.DropConnections()
	require.Equal(t, "held", p.line()) // the first witness is dead
	p.signal(syscall.SIGKILL)
	p.wait()
}
