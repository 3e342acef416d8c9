package enqueue

import (
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

const (
	warnFrom = 1 << 30     // the sequence number from which on a counter runs out
	warnEach = time.Minute // a warning of one queue is logged at most once in this time
)

// WarnOfCounter warns if the sequence number of a new node shows that the directory's counter runs
// out. A queue is identified by its key.
func WarnOfCounter(c *framework.Client, log func() *zap.Logger, queue any, seq int32) {
	if seq >= 0 && seq < warnFrom {
		return
	}
	if mayWarn(c, queue, "counter") {
		log().Warn("the directory's counter of sequence numbers is running out, "+
			"Curator clients will not exclude each other then: delete the parent while no client uses the lock",
			zap.Int32("sequence", seq))
	}
}

// WarnOfOtherLock warns if node, a child of the directory, belongs to a lock of another kind. An
// empty name is none. A queue is identified by its key.
func WarnOfOtherLock(c *framework.Client, log func() *zap.Logger, queue any, node string) {
	if node != "" && mayWarn(c, queue, "other lock") {
		log().Warn("the path is used by another kind of lock, which does not exclude this one",
			zap.String("node", node))
	}
}

func mayWarn(c *framework.Client, queue any, about string) bool {
	return bridge.Local[warnings](bridge.Of(c)).may(warning{queue, about}, time.Now())
}

// warning identifies the warnings of one queue about one thing.
type warning struct {
	queue any
	about string
}

// warnings holds, for the warnings of one client, when each was logged last, until the next is
// allowed.
type warnings struct {
	mu   sync.Mutex
	last map[warning]time.Time
}

// may allows one warning in warnEach for each key of a queue, however many values of Queue have that
// key.
func (w *warnings) may(log warning, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.last, func(_ warning, last time.Time) bool { return now.Sub(last) >= warnEach })
	if _, logged := w.last[log]; logged {
		return false
	}
	if w.last == nil {
		w.last = map[warning]time.Time{}
	}
	w.last[log] = now
	return true
}
