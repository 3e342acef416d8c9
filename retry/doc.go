// Package retry calls a function again when it fails in a way that may pass.
//
// A [Policy] says whether there is another attempt and how long to wait before it. It is a function without state:
// one value may serve any number of calls at the same time.
//
//	err := retry.Do(ctx, retry.Exponential(100*time.Millisecond, 5), isTransient, func(ctx context.Context) error {
//		return store.Put(ctx, key, value)
//	})
//
// # What Do guarantees
//
// The context governs: when it ends, so does the call, during a wait too, and a wait that could not end before its
// deadline is not begun. The last real error is never lost: whatever made Do stop, errors.Is and errors.As reach what
// the function itself reported last.
//
// Loops do not multiply. The context that [Do] gives to the function carries the running loop; a Do under that context
// makes a single attempt and leaves the rest to the outer one. Three nested loops of five retries make six attempts,
// not 216.
//
// # What it does not
//
// It does not know whether a failed attempt has taken effect. A caller whose function must not be applied twice says so
// through the retryable argument. Nor does it interrupt the function: that has to heed its own context.
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
//	SessionFailedRetryPolicy           the retryable argument of Do
//	RetryLoop.callWithRetry            Do
package retry
