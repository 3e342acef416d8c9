package ownership

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
)

// causes name the reasons of losses.
var causes = []struct {
	reason error
	name   string
}{
	{ErrNodeDeleted, metrics.CauseNodeDeleted},
	{ErrForeignLost, metrics.CauseForeignLost},
	{framework.ErrClosed, metrics.CauseClosed},
	{framework.ErrSuspended, metrics.CauseSuspended},
	{framework.ErrSessionLost, metrics.CauseSessionLost},
}

// measure reports the end of the ownership of one lock: err is why it was lost, or the result of
// its release.
func measure(m metrics.Metrics, labels metrics.Labels, held time.Duration, err error) {
	labels.Cause = metrics.CauseReleased
	for _, c := range causes {
		if errors.Is(err, c.reason) {
			labels.Cause = c.name
			m.Add(metrics.LockLosses, 1, labels)
			break
		}
	}
	m.Record(metrics.LockHold, held, labels)
}
