package fence

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

var (
	// ErrStale means that a larger token was seen before. The sender of this one no longer holds
	// the lock.
	ErrStale = errors.New("fence: stale token")
	// ErrNoToken means that a number is not a token. Tokens are positive. The token of a zero Hold
	// is 0.
	ErrNoToken = errors.New("fence: not a token")
)

var errNilFunc = errors.New("fence: nil function")

// Register remembers the largest token it has seen. The zero value is ready for use and has seen
// none. It is safe for concurrent use and must not be copied.
type Register struct {
	writing sync.Mutex // held during a write, so that last does not change before the write has returned
	last    atomic.Int64
}

// Accept remembers a token that is not smaller than the largest one seen. It refuses a smaller one
// with an error that matches ErrStale and has both, and one that is not positive with ErrNoToken.
//
// When Accept returns, a request with a larger token may already be on its way, so what the caller
// does next is not protected. Use Do for a write. Accept waits for a write that is under way.
func (r *Register) Accept(token int64) error {
	return r.Do(token, func() error { return nil })
}

// Do calls write if the token would be accepted. Otherwise it returns the error of Accept. The
// comparison and the write are one step: no write with a smaller token runs at the same time or
// later. Writes with the same token do not run at the same time either. Calls wait for each other
// however long a write takes, so write should have a time limit. It must not use the same Register,
// except for Last.
//
// Do returns the error of write, and an error if write is nil. The token is remembered even if
// write fails, and before write begins. A token that was seen proves that there is a later holder,
// even if its write failed or was carried out only in part. If the token were forgotten, an earlier
// holder could write between that write and its repetition. The holder of the same token may try
// again.
func (r *Register) Do(token int64, write func() error) error {
	if write == nil {
		return errNilFunc
	}
	if token <= 0 {
		return fmt.Errorf("%w: %d", ErrNoToken, token)
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if last := r.last.Load(); token < last {
		return fmt.Errorf("%w: %#x after %#x", ErrStale, token, last)
	}
	r.last.Store(token)
	return write()
}

// Last returns the largest token seen, or 0. It does not wait: the write with that token may still
// be under way.
func (r *Register) Last() int64 { return r.last.Load() }
