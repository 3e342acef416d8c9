package retry

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const draws = 2000

// waits asks p until it gives up, at most limit times.
func waits(p Policy, elapsed time.Duration, limit int) []time.Duration {
	var out []time.Duration
	for attempt := range limit {
		wait, ok := p(attempt, elapsed)
		if !ok {
			break
		}
		out = append(out, wait)
	}
	return out
}

func TestPolicyAllowsSoManyRetriesAndWaits(t *testing.T) {
	const s, long = time.Second, time.Hour
	tests := []struct {
		name    string
		policy  Policy
		elapsed time.Duration
		want    []time.Duration
	}{
		{"never", Never(), 0, nil},
		{"once", Once(s), long, []time.Duration{s}},
		{"once without a wait", Once(0), long, []time.Duration{0}},
		{"no times", Times(0, s), 0, nil},
		{"three times", Times(3, s), long, []time.Duration{s, s, s}},
		{"forever", Forever(s), long, []time.Duration{s, s, s, s, s}},
		{"before the time has passed", UntilElapsed(2*s, s), 2*s - 1, []time.Duration{s, s, s, s, s}},
		{"when the time has passed", UntilElapsed(2*s, s), 2 * s, nil},
		{"after the time has passed", UntilElapsed(2*s, s), 3 * s, nil},
		{"no time at all", UntilElapsed(0, s), 0, nil},
		{"exponential without retries", Exponential(s, 0), 0, nil},
		{"exponential starts with its base", Exponential(s, 1), 0, []time.Duration{s}},
		{"exponential with a base of zero", Exponential(0, 3), 0, []time.Duration{0, 0, 0}},
		{"bounded below its base", BoundedExponential(s, s/2, 3), 0, []time.Duration{s / 2, s / 2, s / 2}},
		{"bounded by zero", BoundedExponential(s, 0, 2), 0, []time.Duration{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, waits(tt.policy, tt.elapsed, 5))
		})
	}
}

func TestExponentialDrawsEveryMultipleAndNoOther(t *testing.T) {
	p := Exponential(time.Second, 3)
	for attempt, largest := range []int{1, 3, 7} {
		seen := map[time.Duration]bool{}
		for range draws {
			wait, ok := p(attempt, 0)
			require.True(t, ok)
			seen[wait] = true
		}
		require.Len(t, seen, largest, "attempt %d", attempt)
		for k := range largest {
			require.Contains(t, seen, time.Duration(k+1)*time.Second, "attempt %d", attempt)
		}
	}
}

func TestExponentialCountsAtMost29Retries(t *testing.T) {
	require.Len(t, waits(Exponential(1, 29), 0, 100), 29)
	require.Len(t, waits(Exponential(1, 30), 0, 100), 29)
	require.Len(t, waits(BoundedExponential(1, 1, math.MaxInt), 0, 100), 29)
}

func TestExponentialStaysWithinItsBounds(t *testing.T) {
	tests := []struct {
		name      string
		base, max time.Duration
		want      time.Duration // the longest wait possible
	}{
		{"the bound given", time.Second, 10 * time.Second, 10 * time.Second},
		{"Curator's own bound", time.Hour, math.MaxInt64, maxExponentialWait},
		{"a huge base", math.MaxInt64, math.MaxInt64, maxExponentialWait},
		{"a base that just overflows when doubled", math.MaxInt64/2 + 1, math.MaxInt64, maxExponentialWait},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range draws / 20 {
				for attempt, wait := range waits(BoundedExponential(tt.base, tt.max, 29), 0, 29) {
					require.GreaterOrEqual(t, wait, min(tt.base, tt.want), "attempt %d", attempt)
					require.LessOrEqual(t, wait, tt.want, "attempt %d", attempt)
				}
			}
		})
	}
}

func TestUnboundedExponentialHasCuratorsBound(t *testing.T) {
	require.Equal(t, 2147483647*time.Millisecond, maxExponentialWait)
	wait, ok := Exponential(math.MaxInt64, 1)(0, 0)
	require.True(t, ok)
	require.Equal(t, maxExponentialWait, wait)
}

func TestPolicyToleratesNegativeAttempts(t *testing.T) {
	for _, attempt := range []int{-1, -2, math.MinInt} {
		wait, ok := Exponential(time.Second, 1)(attempt, 0)
		require.True(t, ok)
		require.Equal(t, time.Second, wait)
	}
}

func TestPolicyMayBeShared(t *testing.T) {
	p := Exponential(time.Second, 3)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range draws {
				if got := len(waits(p, 0, 10)); got != 3 {
					t.Errorf("%d retries, want 3", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConstructorsPanicOnValuesThatMakeNoSense(t *testing.T) {
	tests := []struct {
		name string
		make func() Policy
		want string
	}{
		{"Once, wait", func() Policy { return Once(-time.Second) }, "retry: negative wait -1s"},
		{"Times, count", func() Policy { return Times(-1, 0) }, "retry: negative count -1"},
		{"Times, wait", func() Policy { return Times(1, -1) }, "retry: negative wait -1ns"},
		{"Forever, no wait", func() Policy { return Forever(0) }, "retry: wait 0s is not positive"},
		{"Forever, negative", func() Policy { return Forever(-1) }, "retry: wait -1ns is not positive"},
		{"UntilElapsed, total", func() Policy { return UntilElapsed(-1, 1) }, "retry: negative total -1ns"},
		{"UntilElapsed, wait", func() Policy { return UntilElapsed(1, -1) }, "retry: negative wait -1ns"},
		{"Exponential, base", func() Policy { return Exponential(-1, 1) }, "retry: negative base -1ns"},
		{"Exponential, count", func() Policy { return Exponential(1, -1) }, "retry: negative count -1"},
		{"BoundedExponential base", func() Policy { return BoundedExponential(-1, 1, 1) }, "retry: negative base -1ns"},
		{"BoundedExponential, max", func() Policy { return BoundedExponential(1, -1, 1) }, "retry: negative max -1ns"},
		{"BoundedExponential count", func() Policy { return BoundedExponential(1, 1, -1) },
			"retry: negative count -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.PanicsWithValue(t, tt.want, func() { tt.make() })
		})
	}
}
