package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clocks returns a function that reads clocks of which each reading is known.
func clocks(readings map[uintptr][]time.Duration) func(clock uintptr) (at time.Duration, known bool) {
	return func(clock uintptr) (at time.Duration, known bool) {
		at = readings[clock][0]
		readings[clock] = readings[clock][1:]
		return at, true
	}
}

func TestSuspensionIsTheDifferenceOfTwoClocks(t *testing.T) {
	const awake, suspended = time.Hour, time.Minute
	require.Equal(t, suspended, difference(clocks(map[uintptr][]time.Duration{
		clockMonotonic: {awake + time.Millisecond},
		clockBoottime:  {awake + suspended, awake + suspended + 2*time.Millisecond},
	})))
}

func TestSuspensionIsReadAgainAfterAPauseOfTheProcess(t *testing.T) {
	const awake, suspended, pause = time.Hour, time.Minute, time.Second
	require.Equal(t, suspended, difference(clocks(map[uintptr][]time.Duration{
		clockMonotonic: {awake + pause, awake + pause},
		clockBoottime: {
			awake + suspended, awake + suspended + pause,
			awake + suspended + pause, awake + suspended + pause,
		},
	})))
}

func TestSuspensionOfAnUnknownClockIsNone(t *testing.T) {
	require.Zero(t, difference(func(clock uintptr) (time.Duration, bool) {
		return time.Duration(clock) * time.Hour, false
	}))
}

func TestClocksOfTheKernel(t *testing.T) {
	monotonic, known := reading(clockMonotonic)
	require.True(t, known)
	require.Positive(t, monotonic)
	boottime, known := reading(clockBoottime)
	require.True(t, known)
	require.GreaterOrEqual(t, boottime, monotonic)
	_, known = reading(1 << 20)
	require.False(t, known, "there is no such clock")
}
