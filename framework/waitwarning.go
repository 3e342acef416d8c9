package framework

import (
	"fmt"
	"time"
)

const defaultWaitWarning = time.Minute

// WithWaitWarning sets after how long a wait in the queue of a lock is logged as a warning, which
// names the first node of the queue. The warning is repeated each time that the wait has doubled.
// Of the waiters of one value of a recipe, one warns in each period of limit. 0 means never.
// Default one minute.
func WithWaitWarning(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("WithWaitWarning: %v is negative: use 0 for none", limit)
		}
		c.waitWarning = limit
		return nil
	}
}
