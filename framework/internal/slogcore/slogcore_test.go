package slogcore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework/internal/slogcore"
)

// logged returns the lines, parsed, that fn logs at a level or above.
func logged(t *testing.T, level slog.Level, fn func(*zap.Logger)) []map[string]any {
	t.Helper()
	return written(t, level, func(h slog.Handler) { fn(zap.New(slogcore.New(h))) })
}

// written returns the lines, parsed, that fn writes to a handler.
func written(t *testing.T, level slog.Level, fn func(slog.Handler)) (lines []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	fn(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		require.NotEmpty(t, fields["time"])
		delete(fields, "time")
		lines = append(lines, fields)
	}
	return lines
}

type holder struct{ host string }

func (h holder) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("host", h.host)
	e.AddInt("pid", 7)
	return nil
}

func TestFieldsBecomeAttributes(t *testing.T) {
	lines := logged(t, slog.LevelInfo, func(l *zap.Logger) {
		l.Named("docent").Named("mutex").With(zap.String("path", "/a"), zap.Int("n", 1)).With(zap.Bool("b", true)).Warn(
			"hold ended", zap.Duration("after", time.Second), zap.Error(errors.New("lost")),
			zap.Stringer("at", slog.LevelInfo),
			zap.Object("first", holder{"h"}), zap.Strings("list", []string{"x", "y"}), zap.Int64("large", 1<<60),
			zap.Skip(), zap.Error(nil), zap.Inline(holder{"in"}), zap.Any("any", map[string]int{"k": 1}),
			zap.Time("since", time.Unix(0, 0).UTC()), zap.Float32("f", 0.5),
			zap.Uint8("u", 8), zap.ByteString("s", []byte("text")))
	})
	require.Equal(t, []map[string]any{{
		"level": "WARN", "msg": "hold ended", "logger": "docent.mutex", "path": "/a", "n": 1.0, "b": true,
		"after": 1e9, "error": "lost", "at": "INFO", "first": map[string]any{"host": "h", "pid": 7.0},
		"list": []any{"x", "y"}, "large": float64(1 << 60), "host": "in", "pid": 7.0, "any": map[string]any{"k": 1.0},
		"since": "1970-01-01T00:00:00Z", "f": 0.5, "u": 8.0, "s": "text",
	}}, lines)
}

func TestNamespacesBecomeGroups(t *testing.T) {
	lines := logged(t, slog.LevelInfo, func(l *zap.Logger) {
		l = l.With(zap.Int("a", 1), zap.Namespace("outer"), zap.Int("b", 2))
		l.Info("one", zap.Int("c", 3), zap.Namespace("inner"), zap.Int("d", 4))
		l.With(zap.Namespace("other")).Info("two", zap.Int("e", 5))
	})
	require.Equal(t, []map[string]any{
		{"level": "INFO", "msg": "one", "a": 1.0, "outer": map[string]any{
			"b": 2.0, "c": 3.0, "inner": map[string]any{"d": 4.0}}},
		{"level": "INFO", "msg": "two", "a": 1.0, "outer": map[string]any{
			"b": 2.0, "other": map[string]any{"e": 5.0}}},
	}, lines)
}

func TestLevels(t *testing.T) {
	all := func(l *zap.Logger) {
		l.Debug("debug")
		l.Info("info")
		l.Warn("warn")
		l.Error("error")
		require.Panics(t, func() { l.Panic("panic") })
	}
	for min, want := range map[slog.Level][]string{
		slog.LevelDebug: {"DEBUG", "INFO", "WARN", "ERROR", "ERROR+8"},
		slog.LevelWarn:  {"WARN", "ERROR", "ERROR+8"},
	} {
		var levels []string
		for _, line := range logged(t, min, all) {
			levels = append(levels, line["level"].(string))
		}
		require.Equal(t, want, levels)
	}
	core := slogcore.New(slog.NewTextHandler(&bytes.Buffer{}, nil))
	require.False(t, core.Enabled(zap.DebugLevel))
	require.True(t, core.Enabled(zap.InfoLevel))
	require.NoError(t, core.Sync())
}

func TestCallerAndStackAreThere(t *testing.T) {
	var out bytes.Buffer
	handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{AddSource: true})
	zap.New(slogcore.New(handler), zap.AddCaller(), zap.AddStacktrace(zap.WarnLevel)).Warn("here")
	require.Contains(t, out.String(), "slogcore_test.go")
	require.Contains(t, out.String(), `"stacktrace":"github.com/docent-zk/docent/framework/`)
}

// What a program writes with slog and with zap through the core is the same, also with groups, empty
// groups and values without a key.
func TestLinesAreThoseOfSlog(t *testing.T) {
	for name, row := range map[string]struct {
		slog func(*slog.Logger)
		zap  func(*zap.Logger)
	}{
		"no attributes": {func(l *slog.Logger) { l.Info("m") }, func(l *zap.Logger) { l.Info("m") }},
		"attributes": {
			func(l *slog.Logger) { l.Info("m", "k", "v", "d", time.Minute, "t", time.Unix(9, 0)) },
			func(l *zap.Logger) {
				l.Info("m", zap.String("k", "v"), zap.Duration("d", time.Minute), zap.Time("t", time.Unix(9, 0)))
			},
		},
		"with": {
			func(l *slog.Logger) { l.With("a", 1).With("b", 2).Info("m", "c", 3) },
			func(l *zap.Logger) { l.With(zap.Int("a", 1)).With(zap.Int("b", 2)).Info("m", zap.Int("c", 3)) },
		},
		"groups": {
			func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h").Info("m", "c", 3) },
			func(l *zap.Logger) {
				l = l.With(zap.Int("a", 1), zap.Namespace("g"), zap.Int("b", 2), zap.Namespace("h"))
				l.Info("m", zap.Int("c", 3))
			},
		},
		"empty group": {
			func(l *slog.Logger) { l.With("a", 1).WithGroup("g").Info("m") },
			func(l *zap.Logger) { l.With(zap.Int("a", 1), zap.Namespace("g")).Info("m") },
		},
		"group in a line": {
			func(l *slog.Logger) { l.Info("m", slog.Group("g", "host", "h", "pid", 7), "c", 3) },
			func(l *zap.Logger) { l.Info("m", zap.Object("g", holder{"h"}), zap.Int("c", 3)) },
		},
		"group without a name": {
			func(l *slog.Logger) { l.Info("m", slog.Group("", "host", "h", "pid", 7)) },
			func(l *zap.Logger) { l.Info("m", zap.Inline(holder{"h"})) },
		},
	} {
		want := written(t, slog.LevelInfo, func(h slog.Handler) { row.slog(slog.New(h)) })
		require.Equal(t, want, logged(t, slog.LevelInfo, row.zap), name)
	}
}
