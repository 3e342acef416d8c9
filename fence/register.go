package fence

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

var (
	// ErrStale means that a larger token was seen before: whoever sent this one no longer holds the lock.
	ErrStale = errors.New("fence: stale token")
	// ErrNoToken means that a number is no token: tokens are positive, and 0 is what a hold has that never was one.
	ErrNoToken = errors.New("fence: not a token")
)

// Register remembers the largest token it has seen. The zero value is ready for use and has seen none. Safe for concurrent use;
// it must not be copied.
type Register struct {
	turn sync.Mutex // kept through a write: what is compared with it must not change before the write is done
	last atomic.Int64
}

// Accept takes a token that is not smaller than the largest one seen, and remembers it. A smaller one is refused with an error
// that matches ErrStale and names both; one that is not positive with ErrNoToken.
//
// When Accept returns, a larger token may already be on its way: what is done afterwards is not protected. Use Do for a write.
// Accept waits for a write that is under way.
func (r *Register) Accept(token int64) error {
	return r.Do(token, func() error { return nil })
}

// Do calls write if the token would be accepted, else it returns the error of Accept and write is not called. The comparison and
// the write are one step: no write with a smaller token runs beside this one, or after it. Nor does one with the same token run
// beside it: writes take turns, however long they take, so write should bound itself, and must not use the same Register but for
// Last.
//
// The error is that of write. The token is remembered all the same, and before write begins: that it was seen proves that there
// is a later holder, whatever became of its write, which may even have been carried out in part. If it were forgotten, an earlier
// holder could write between that attempt and its repetition. The holder of the same token may try again.
func (r *Register) Do(token int64, write func() error) error {
	if token <= 0 {
		return fmt.Errorf("%w: %d", ErrNoToken, token)
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	if last := r.last.Load(); token < last {
		return fmt.Errorf("%w: %#x after %#x", ErrStale, token, last)
	}
	r.last.Store(token)
	return write()
}

// Last is the largest token seen, 0 if there was none. It waits for nobody: the write it came with may still be under way.
func (r *Register) Last() int64 { return r.last.Load() }
