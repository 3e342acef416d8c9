// Package retry calls a function again if it fails in a way that may pass.
//
// A [Policy] decides whether there is another attempt and how long to wait before it. It is a
// function without state, so one value may be used by any number of calls at the same time.
//
//	err := retry.Do(ctx, retry.Exponential(100*time.Millisecond, 5), isTransient, func(ctx context.Context) error {
//		return store.Put(ctx, key, value)
//	})
//
// # What Do guarantees
//
// Do returns when the context ends, during a wait too. It does not begin a wait that would not end
// before the context's deadline. The last real error is not lost: whatever made Do stop, errors.Is
// and errors.As find the last error of the function.
//
// Loops do not multiply. The context that [Do] passes to the function carries the running loop. A
// Do under that context makes a single attempt and leaves retries to the outer Do. Three nested
// loops of five retries make six attempts, not 216.
//
// # What Do does not do
//
// Do does not know whether a failed attempt has taken effect. If the function must not be applied
// twice, the retryable argument must say so. Do does not interrupt the function either: the
// function must observe its own context.
//
// # For users of Curator
//
//	RetryNTimes                        Times
//	RetryOneTime                       Once
//	RetryForever                       Forever
//	RetryUntilElapsed                  UntilElapsed
//	ExponentialBackoffRetry            Exponential
//	  with its maxSleepMs              BoundedExponential
//	BoundedExponentialBackoffRetry     BoundedExponential
//	SessionFailedRetryPolicy           operations of a framework.Session
//	RetryLoop.callWithRetry            Do
package retry
