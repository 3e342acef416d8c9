// Package logqueue writes a log in a goroutine of its own. So nothing else waits for a log that blocks, and
// a log that panics or ends its goroutine ends nothing else.
package logqueue

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// limit is how many entries wait at most. A log that keeps up never has so many.
const limit = 1 << 14

// Queue has the entries that are to be written. The zero value is empty. It is safe for concurrent use.
// Its goroutine runs only while there are entries.
type Queue struct {
	mu      sync.Mutex
	entries []entry
	dropped int           // entries above limit since the last one that is in entries
	idle    chan struct{} // closed when the goroutine ends; nil: none runs
	closed  bool
}

// entry is an entry of the log, and the core that writes it.
type entry struct {
	core core
	zapcore.Entry
	fields []zapcore.Field
}

// Logger returns a logger that is like l and waits for nothing. Fields are evaluated when they are written.
// The level of l is asked for at once only for entries of the level Debug, which are many.
func (q *Queue) Logger(l *zap.Logger) *zap.Logger {
	if l.Core() == zapcore.NewNopCore() {
		return l
	}
	return l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return core{q, c, func() zapcore.Core { return c }}
	}))
}

// Close waits until all entries are written, at most for the timeout. Later entries are written by the
// goroutine that logs them.
func (q *Queue) Close(timeout time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.flush(timeout)
}

// flush waits until all entries are written, at most for the timeout.
func (q *Queue) flush(timeout time.Duration) {
	idle := q.writing()
	if idle == nil {
		return
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// writing returns a channel that is closed when all entries are written, or nil if they are.
func (q *Queue) writing() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle
}

func (q *Queue) put(e entry) {
	if !q.add(e) {
		e.write()
	}
}

// add reports false if the queue is closed and empty.
func (q *Queue) add(e entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.idle == nil && q.closed:
		return false
	case len(q.entries) >= limit, q.dropped > 0 && len(q.entries) > limit/2: // many are dropped at once
		q.dropped++
		return true
	case q.dropped > 0:
		q.entries = append(q.entries, e.missing(q.dropped))
		q.dropped = 0
	}
	q.entries = append(q.entries, e)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.write()
	}
	return true
}

// write writes all entries.
func (q *Queue) write() {
	ended := false
	defer func() {
		if !ended { // the log has ended the goroutine
			go q.write()
		}
	}()
	for e, ok := q.next(); ok; e, ok = q.next() {
		e.write()
	}
	ended = true
}

// next takes the next entry. It reports false if there is none, and then another goroutine writes the later
// ones.
func (q *Queue) next() (e entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) == 0 {
		close(q.idle)
		q.idle, q.entries = nil, nil
		return e, false
	}
	e = q.entries[0]
	q.entries[0] = entry{}
	if q.entries = q.entries[1:]; len(q.entries) == 0 && q.dropped > 0 {
		q.entries = append(q.entries, e.missing(q.dropped))
		q.dropped = 0
	}
	return e, true
}

// write writes the entry. A panic of the log is printed, because there is no log for it.
func (e entry) write() {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Fprintf(os.Stderr, "docent: the log panicked at %q: %v\n%s", e.Message, reason, debug.Stack())
		}
	}()
	if checked := e.core.program().Check(e.Entry, nil); checked != nil {
		checked.ErrorOutput = zapcore.Lock(os.Stderr)
		checked.Write(e.fields...)
	}
}

// missing returns the entry that says how many others are missing.
func (e entry) missing(n int) entry {
	return entry{e.core, zapcore.Entry{
		Level: zap.WarnLevel, Time: time.Now(), LoggerName: e.LoggerName,
		Message: "entries are missing, because the log was too slow",
	}, []zapcore.Field{zap.Int("entries", n)}}
}

// core puts the entries for the program's core into a queue.
type core struct {
	queue   *Queue
	level   zapcore.LevelEnabler
	program func() zapcore.Core // called where entries are written: With may wait for what is being written
}

// Enabled implements zapcore.Core.
func (c core) Enabled(l zapcore.Level) bool { return l > zapcore.DebugLevel || c.level.Enabled(l) }

// With implements zapcore.Core.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	fields = slices.Clone(fields)
	return core{c.queue, c.level, kept(func() zapcore.Core { return c.program().With(fields) })}
}

// kept returns a function that calls derive until it has returned once, and then returns its result.
func kept(derive func() zapcore.Core) func() zapcore.Core {
	var mu sync.Mutex
	var derived zapcore.Core
	return func() zapcore.Core {
		mu.Lock()
		defer mu.Unlock()
		if derived == nil {
			derived = derive()
		}
		return derived
	}
}

// Check implements zapcore.Core.
func (c core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// patience is how long an entry that ends the program, or a Sync, waits for the log.
const patience = time.Second

// Write implements zapcore.Core.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.queue.put(entry{c, e, fields})
	if e.Level > zapcore.ErrorLevel {
		c.queue.flush(patience)
	}
	return nil
}

// Sync implements zapcore.Core.
func (c core) Sync() error {
	c.queue.flush(patience)
	return c.program().Sync()
}
