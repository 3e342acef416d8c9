package page

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// maxViewers is how many streams there are at most.
	maxViewers = 500
	// keepAlive is the time after which a stream is written to, so that it is found out if it is cut.
	keepAlive = 15 * time.Second
	// writeTime is the time that a write to a stream may take.
	writeTime = 10 * time.Second
)

// stream tells the versions of the pictures as server-sent events.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if p.tree.count() >= maxViewers {
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer p.tree.join()()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx as the proxy
	control := http.NewResponseController(w)
	say := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	keepAlives := time.NewTicker(keepAlive)
	defer keepAlives.Stop()
	if !say("retry: 2000\n\n") {
		return
	}
	for told := int64(-1); ; {
		now, next := p.tree.look()
		if now.version != told && !say(fmt.Sprintf("data: %d\n\n", now.version)) {
			return
		}
		told = now.version
		select {
		case <-next:
		case <-keepAlives.C:
			if !say(":\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
	}
}

// count returns the number of viewers.
func (t *tree) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.viewers
}
