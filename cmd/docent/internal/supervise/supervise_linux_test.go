package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// held is a hold with a deadline that does not move.
type held time.Time

func (h held) Done() <-chan struct{} { return nil }
func (h held) ValidUntil() time.Time { return time.Time(h) }

func TestTimesCountBackFromTheDeadline(t *testing.T) {
	limits := LimitsFor(30*time.Second, 0)
	assert.Equal(t, Limits{5 * time.Second, 1500 * time.Millisecond, 600 * time.Millisecond}, limits)
	assert.Equal(t, time.Second, LimitsFor(30*time.Second, time.Second).Grace)
	before := now()
	times := limits.timesOf(held(time.Now().Add(20*time.Second)), never)
	after := now()
	deadline := times.Kill.add(limits.Margin)
	assert.LessOrEqual(t, before.until(deadline), 20*time.Second+after.until(before).Abs())
	assert.LessOrEqual(t, after.until(deadline), 20*time.Second)
	assert.Equal(t, limits.Grace, times.Warn.until(times.Kill))
}

func TestTimesOfAHoldThatHasEndedDoNotMove(t *testing.T) {
	limits := LimitsFor(30*time.Second, 0)
	first := limits.timesOf(held{}, never)
	assert.LessOrEqual(t, first.Kill, now())
	assert.Equal(t, first, limits.timesOf(held{}, first))
}

// touches runs a command that makes a file. It reports whether it did.
func touches(t *testing.T, hold Hold) (ending Ending, made bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	touch, err := exec.LookPath("touch")
	require.NoError(t, err)
	ending, err = Run(Command{Path: touch, Args: []string{"touch", file}, Env: os.Environ()}, hold,
		LimitsFor(time.Minute, 0), Request{}, nil, func(string) {})
	require.NoError(t, err)
	_, err = os.Stat(file)
	return ending, err == nil
}

func TestACommandIsStartedOnlyUnderAHold(t *testing.T) {
	ending, made := touches(t, held(time.Now().Add(time.Hour)))
	assert.True(t, made)
	assert.Equal(t, Ending{}, ending)
	for name, hold := range map[string]held{"ended": {}, "about to end": held(time.Now().Add(10 * time.Second))} {
		ending, made := touches(t, hold)
		assert.False(t, made, name)
		assert.True(t, ending.Cut, name)
	}
}

func TestOnlyARequestThatIsNotIgnoredHasTimes(t *testing.T) {
	limits := LimitsFor(30*time.Second, 0)
	assert.Equal(t, never, limits.timesAsked(Ignore, never))
	before := now()
	term, kill := limits.timesAsked(Term, never), limits.timesAsked(Kill, never)
	assert.LessOrEqual(t, before, term.Ask)
	assert.Equal(t, never.Force, term.Force, "there is no SIGKILL")
	assert.Equal(t, kill.Ask.add(limits.Grace), kill.Force)
	moved := limits.timesOf(held(time.Now().Add(20*time.Second)), kill)
	assert.Equal(t, kill.Ask, moved.Ask, "the deadline does not move it")
	assert.Equal(t, kill.Force, moved.Force)
	ended := limits.timesOf(held{}, kill)
	assert.LessOrEqual(t, ended.Kill, now())
	assert.Equal(t, kill.Force, ended.Force)
}

// movable is a hold with a deadline that moves.
type movable struct{ until atomic.Pointer[time.Time] }

func (m *movable) Done() <-chan struct{} { return nil }
func (m *movable) ValidUntil() time.Time { return *m.until.Load() }

func (m *movable) move(d time.Duration) {
	until := time.Now().Add(d)
	m.until.Store(&until)
}

// A command that was asked, and takes its time, is told again when the lock is about to be lost.
func TestACommandThatWasAskedIsToldAgainBeforeALoss(t *testing.T) {
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "told")
	hold, asked := &movable{}, make(chan struct{})
	hold.move(time.Hour)
	limits := Limits{Grace: 10 * time.Minute, Margin: time.Minute, Interval: 10 * time.Millisecond}
	script := `trap 'n=x$n; echo told >>"$0"; [ $n = x ] || exit 7' TERM; echo ready >"$0"
		while :; do sleep 0.01; done`
	var ending Ending
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ending, err = Run(Command{Path: shell, Args: []string{"sh", "-c", script, file}, Env: os.Environ()}, hold,
			limits, Request{Asked: asked, What: "the lock", Answer: Term}, nil, func(string) {})
	}()
	defer func() {
		hold.move(-time.Hour) // if the test has failed
		<-ended
	}()
	has := func(text string) {
		require.Eventually(t, func() bool {
			content, err := os.ReadFile(file)
			return err == nil && string(content) == text
		}, time.Minute, 10*time.Millisecond)
	}
	has("ready\n")
	close(asked)
	has("ready\ntold\n")
	hold.move(limits.Grace)
	<-ended
	require.NoError(t, err)
	assert.Equal(t, Ending{Code: 7, Cut: true, Asked: true}, ending)
}

// A child ends after a look at all processes that has found its own child below it.
func TestWhatAnEndedChildHasLeftIsNotOverlooked(t *testing.T) {
	started := func(name string, args ...string) *os.Process {
		cmd := exec.Command(name, args...)
		require.NoError(t, cmd.Start())
		return cmd.Process
	}
	ended, left := started("true"), started("sleep", "1000")
	require.Eventually(t, func() bool { return exited(ended.Pid) }, time.Minute, time.Millisecond)
	found := [][]process{
		{{pid: ended.Pid, parent: os.Getpid()}, {pid: left.Pid, parent: ended.Pid}},
		{{pid: left.Pid, parent: os.Getpid()}},
	}
	d := descendants{look: func() []process {
		now := found[0]
		found = found[min(1, len(found)-1):]
		return slices.Clone(now)
	}}
	others := d.reap(0)
	require.NoError(t, left.Kill())
	_, err := left.Wait()
	require.NoError(t, err)
	require.Len(t, others, 1)
	assert.Equal(t, left.Pid, others[0].pid)
}

func TestTheNameOfAProcessCanBeAnything(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	strange := filepath.Join(t.TempDir(), ") R 1 (")
	require.NoError(t, os.Symlink(sleep, strange))
	cmd := exec.Command(strange, "1000")
	require.NoError(t, cmd.Start())
	found, ok := readProcess(cmd.Process.Pid)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.True(t, ok)
	assert.Equal(t, os.Getpid(), found.parent)
	_, ok = readProcess(cmd.Process.Pid)
	assert.False(t, ok, "it has ended")
}
