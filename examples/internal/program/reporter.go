package program

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Reporter prints what happens in an example. It is safe for concurrent use.
type Reporter struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// NewReporter returns a Reporter with a clock that starts now.
func NewReporter(out io.Writer) *Reporter { return &Reporter{out: out, start: time.Now()} }

// Text prints a line.
func (r *Reporter) Text(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// Line prints a line that begins with the time since the start.
func (r *Reporter) Line(format string, args ...any) {
	r.Text("%6.2fs  %s", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}
