package recipes

import (
	"errors"
	"path"
	"time"

	"github.com/docent-zk/docent/framework"
)

// causes name the reasons why a hold ends though nobody wanted it.
var causes = []struct {
	reason error
	name   string
}{
	{ErrNodeDeleted, framework.CauseNodeDeleted},
	{framework.ErrClosed, framework.CauseClosed},
	{framework.ErrSuspended, framework.CauseSuspended},
	{framework.ErrSessionLost, framework.CauseSessionLost},
}

// measure tells of the end of a tenure, once: err is why it ended, or what became of its release.
func (t *tenure) measure(held time.Duration, err error) {
	m := t.Session.Metrics()
	labels := framework.Labels{Recipe: t.Recipe, Path: path.Dir(t.Node), Cause: framework.CauseReleased}
	for _, c := range causes {
		if errors.Is(err, c.reason) {
			labels.Cause = c.name
			m.Add(framework.LockLosses, 1, labels)
			break
		}
	}
	m.Record(framework.LockHold, held, labels)
}
