package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		LimitsFor(time.Minute, 0), nil, func(string) {})
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
