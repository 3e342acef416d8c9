package framework

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
)

// WithMetrics sets the receiver of the measurements of the client and of the recipes on it.
// Default: none. Curator: TracerDriver.
func WithMetrics(m metrics.Metrics) Option {
	return func(c *config) error {
		if m == nil {
			return fmt.Errorf("WithMetrics: nil metrics: leave the option out for none")
		}
		c.metrics = m
		return nil
	}
}

// unmeasured discards measurements. It is the default.
type unmeasured struct{}

func (unmeasured) Add(metrics.Instrument, int64, metrics.Labels)            {}
func (unmeasured) Record(metrics.Instrument, time.Duration, metrics.Labels) {}

func (o ops) metrics() metrics.Metrics {
	if o.core == nil {
		return unmeasured{}
	}
	return o.core.cfg.metrics
}

// pending counts a pending deletion while it calls fn. It calls fn also if the metrics of the program end the
// goroutine.
func (c *core) pending(fn func()) {
	defer c.cfg.metrics.Add(metrics.PendingDeletions, -1, metrics.Labels{})
	defer fn()
	c.cfg.metrics.Add(metrics.PendingDeletions, 1, metrics.Labels{})
}

// errExpired is the reason of the end of a session that a server has reported.
var errExpired = fmt.Errorf("%w: the servers do not know it any more", ErrSessionLost)

// lossCause returns the label for the end of a session.
func lossCause(reason error) string {
	switch {
	case errors.Is(reason, ErrClosed):
		return metrics.CauseClosed
	case errors.Is(reason, errExpired):
		return metrics.CauseExpired
	}
	return metrics.CauseDeadline
}

// measureState counts changes of state. It runs as a listener.
func (c *core) measureState(change StateChange) {
	switch change.State {
	case Lost:
		// A refused credential is counted once, by AuthFailed, whether or not there was a session.
		if refusal(change.Cause) == nil {
			c.cfg.metrics.Add(metrics.SessionLosses, 1, metrics.Labels{Cause: lossCause(change.Cause)})
		}
	case AuthFailed:
		c.cfg.metrics.Add(metrics.SessionLosses, 1, metrics.Labels{Cause: metrics.CauseAuthFailed})
	case Reconnected:
		c.cfg.metrics.Add(metrics.Reconnects, 1, metrics.Labels{})
	}
}
