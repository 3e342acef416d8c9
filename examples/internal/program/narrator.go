package program

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Narrator tells what happens. Safe for concurrent use.
type Narrator struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// NewNarrator begins to tell now.
func NewNarrator(out io.Writer) *Narrator { return &Narrator{out: out, start: time.Now()} }

// Text is told as it is.
func (n *Narrator) Text(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, format+"\n", args...)
}

// Line is told with the time since the start.
func (n *Narrator) Line(format string, args ...any) {
	n.Text("%6.2fs  %s", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...))
}
