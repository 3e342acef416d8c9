package framework

import (
	"fmt"
	"time"
)

const defaultWaitWarning = time.Minute

// WithWaitWarning sets how long somebody waits in line for a lock before a warning is logged that says who is first in it. It is
// repeated each time the wait has doubled; of those who wait through one value of a recipe, one warns in each span of limit. 0 is
// never. Default one minute.
func WithWaitWarning(limit time.Duration) Option {
	return func(c *config) error {
		if limit < 0 {
			return fmt.Errorf("wait warning %v is negative: use 0 for none", limit)
		}
		c.waitWarning = limit
		return nil
	}
}
