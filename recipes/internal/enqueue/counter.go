package enqueue

import (
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// A create of a node with a number from warnFrom on warns that the directory's counter runs out, at
// most once in warnEach for each queue.
const (
	warnFrom = 1 << 30
	warnEach = time.Minute
)

// WarnOfCounter warns if the sequence number of a new node shows that the directory's counter runs
// out. A queue is identified by its key.
func WarnOfCounter(c *framework.Client, log *zap.Logger, queue any, seq int32) {
	if seq >= 0 && seq < warnFrom {
		return
	}
	if bridge.Local[counterWarnings](bridge.Of(c)).mayWarn(queue, time.Now()) {
		log.Warn("the directory's counter of sequence numbers is running out, "+
			"Curator clients will not exclude each other then: delete the parent while no client uses the lock",
			zap.Int32("sequence", seq))
	}
}

// counterWarnings holds, for each queue of one client, when the last warning was logged, until the
// next is allowed.
type counterWarnings struct {
	mu   sync.Mutex
	last map[any]time.Time
}

// mayWarn allows one warning in warnEach for each key of a queue, however many values of Queue
// have that key.
func (w *counterWarnings) mayWarn(queue any, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.last, func(_ any, last time.Time) bool { return now.Sub(last) >= warnEach })
	if _, warned := w.last[queue]; warned {
		return false
	}
	if w.last == nil {
		w.last = map[any]time.Time{}
	}
	w.last[queue] = now
	return true
}
