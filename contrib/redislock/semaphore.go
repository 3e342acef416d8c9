package redislock

import "fmt"

// NewSemaphore returns the semaphore of a name, which as many holds have at a time as there are
// permits. It makes no request. It fails like New, and if permits is not positive. A lock of another
// kind must have another name: each fails with WRONGTYPE while the other is held.
//
// Each hold has one permit, with its own time to live, deadline and token. It does not re-enter: an
// acquire under the context of a hold takes another permit. An acquire fails if the present holders have
// another number of permits, with an error that names both.
func NewSemaphore(c *Client, name string, permits int) (*Lock, error) {
	l, keys, err := newLock(c, name, "permits")
	switch {
	case err != nil:
		return nil, err
	case permits < 1:
		return nil, fmt.Errorf("redislock: %d permits of the semaphore %q are not positive", permits, name)
	}
	l.reentry = nil
	l.kind = &single{
		c: c, keys: keys, channel: l.ch, permits: int64(permits),
		acquireScript: acquirePermitScript, renewScript: renewAmongScript, releaseScript: releasePermitScript,
	}
	return l, nil
}
