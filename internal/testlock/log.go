package testlock

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Log returns the logger of Client. It fails the test if Hold.Err calls it, which must not wait for a log.
func Log(t testing.TB) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	core := zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zapcore.InfoLevel)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if isCalledBy("ownership.(*Hold).Err") {
			t.Errorf("Hold.Err writes to the log: %s", e.Message)
		}
		return nil
	}))
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
