package recipes

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
)

// causes name the reasons why a hold ends though nobody wanted it.
var causes = []struct {
	reason error
	name   string
}{
	{ErrNodeDeleted, framework.CauseNodeDeleted},
	{ErrForeignLost, framework.CauseForeignLost},
	{framework.ErrClosed, framework.CauseClosed},
	{framework.ErrSuspended, framework.CauseSuspended},
	{framework.ErrSessionLost, framework.CauseSessionLost},
}

// measure tells of the end of a tenure of one lock: err is why it ended, or what became of its release.
func measure(m framework.Metrics, labels framework.Labels, held time.Duration, err error) {
	labels.Cause = framework.CauseReleased
	for _, c := range causes {
		if errors.Is(err, c.reason) {
			labels.Cause = c.name
			m.Add(framework.LockLosses, 1, labels)
			break
		}
	}
	m.Record(framework.LockHold, held, labels)
}
