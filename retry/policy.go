package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Limits of Curator's ExponentialBackoffRetry. A ported program waits as it did before.
const (
	maxExponentialRetries = 29
	maxExponentialWait    = math.MaxInt32 * time.Millisecond
)

// Policy returns how long to wait before retry number attempt, which counts from 0. elapsed is the
// time since the start of the first attempt. It returns false if there is to be no retry. A Policy
// has no state and may be shared. A nil Policy means [Never]. A negative wait means none.
//
// Curator: RetryPolicy.
type Policy func(attempt int, elapsed time.Duration) (time.Duration, bool)

// Never allows no retry: there is only the first attempt.
func Never() Policy {
	return Times(0, 0)
}

// Once allows a single retry after wait. It panics if wait is negative.
//
// Curator: RetryOneTime.
func Once(wait time.Duration) Policy {
	return Times(1, wait)
}

// Times allows n retries, so n+1 attempts, with the same wait before each. It panics if n or wait
// is negative.
//
// Curator: RetryNTimes.
func Times(n int, wait time.Duration) Policy {
	mustNotBeNegative("count", n)
	mustNotBeNegative("wait", wait)
	return func(attempt int, _ time.Duration) (time.Duration, bool) {
		return wait, attempt < n
	}
}

// Forever always allows another retry. Only the end of the context or an error that is not
// retryable ends the loop. It panics unless wait is positive: endless retries without a pause would
// only load the servers.
//
// Curator: RetryForever.
func Forever(wait time.Duration) Policy {
	if wait <= 0 {
		panic(fmt.Sprintf("retry: wait %v is not positive", wait))
	}
	return func(int, time.Duration) (time.Duration, bool) {
		return wait, true
	}
}

// UntilElapsed allows retries as long as less than total has passed since the start of the first
// attempt. It compares the time before the wait, so the last attempt may start up to wait later
// than total. It panics if total or wait is negative.
//
// Curator: RetryUntilElapsed.
func UntilElapsed(total, wait time.Duration) Policy {
	mustNotBeNegative("total", total)
	mustNotBeNegative("wait", wait)
	return func(_ int, elapsed time.Duration) (time.Duration, bool) {
		return wait, elapsed < total
	}
}

// Exponential allows n retries and waits a random multiple of base before each: from 1 to
// 2^(attempt+1)-1 times, so the first wait is exactly base. As in Curator, n above 29 counts as 29,
// and no wait exceeds 2^31-1 milliseconds, about 25 days. It panics if base or n is negative.
//
// Curator: ExponentialBackoffRetry.
func Exponential(base time.Duration, n int) Policy {
	return BoundedExponential(base, maxExponentialWait, n)
}

// BoundedExponential is [Exponential] with no wait longer than max. It panics if base, max or n is negative.
//
// Curator: BoundedExponentialBackoffRetry.
func BoundedExponential(base, max time.Duration, n int) Policy {
	mustNotBeNegative("base", base)
	mustNotBeNegative("max", max)
	mustNotBeNegative("count", n)
	n = min(n, maxExponentialRetries)
	longest := min(max, maxExponentialWait)
	return func(attempt int, _ time.Duration) (time.Duration, bool) {
		if attempt >= n {
			return 0, false
		}
		return multiply(base, factor(attempt), longest), true
	}
}

// factor returns the random multiple for a retry. It is 1 twice as often as any other value,
// because a random number of 0 counts as 1. Curator has the same distribution.
func factor(attempt int) int64 {
	return max(1, rand.Int64N(1<<(max(attempt, 0)+1)))
}

// multiply returns base times k, at most longest, and does not overflow. k is positive.
func multiply(base time.Duration, k int64, longest time.Duration) time.Duration {
	if base > longest/time.Duration(k) {
		return longest
	}
	return base * time.Duration(k)
}

// mustNotBeNegative panics if an argument of a constructor is negative.
func mustNotBeNegative[T int | time.Duration](what string, value T) {
	if value < 0 {
		panic(fmt.Sprintf("retry: negative %s %v", what, value))
	}
}
