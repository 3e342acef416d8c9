package testlock

import (
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// log is a core of a logger. It fails the test if it is called by Hold.Err, which must not wait for a log.
type log struct{ t testing.TB }

// Log returns the logger of Client. It fails the test if Hold.Err calls it.
func Log(t testing.TB) *zap.Logger { return zap.New(log{t}) }

func (log) Enabled(level zapcore.Level) bool    { return level >= zapcore.InfoLevel }
func (l log) With([]zapcore.Field) zapcore.Core { return l }
func (log) Sync() error                         { return nil }

func (l log) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return checked.AddCore(e, l)
	}
	return checked
}

func (l log) Write(e zapcore.Entry, _ []zapcore.Field) error {
	if isCalledBy("ownership.(*Hold).Err") {
		l.t.Errorf("Hold.Err writes to the log: %s", e.Message)
	}
	return nil
}

// isCalledBy reports whether a function with this end of its name is on the stack of the goroutine.
func isCalledBy(function string) bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for frame, more := frames.Next(); ; frame, more = frames.Next() {
		if strings.HasSuffix(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}
