// Package slogcore writes the entries of a zap logger to a slog handler.
//
// Fields become attributes: times, durations, numbers and errors keep their types, objects become
// groups, and a zap namespace becomes a group of all later fields. The name of the logger is the
// attribute "logger", the stack of an entry the attribute "stacktrace".
package slogcore

import (
	"context"
	"log/slog"
	"slices"

	"go.uber.org/zap/zapcore"
)

// core is a zapcore.Core.
type core struct{ handler slog.Handler }

// New returns a core that writes to handler.
func New(handler slog.Handler) zapcore.Core { return core{handler} }

// levelOf returns the slog level of an entry. Levels above Error, which end the program, are
// different levels in slog, too.
func levelOf(level zapcore.Level) slog.Level {
	return slog.Level(level) * (slog.LevelWarn - slog.LevelInfo)
}

func (c core) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(level))
}

func (c core) With(fields []zapcore.Field) zapcore.Core {
	e := encode(fields)
	handler := c.handler
	for i, attrs := range e.levels {
		if i > 0 {
			handler = handler.WithGroup(e.groups[i-1])
		}
		if len(attrs) > 0 {
			handler = handler.WithAttrs(attrs)
		}
	}
	return core{handler}
}

func (c core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(entry.Time, levelOf(entry.Level), entry.Message, entry.Caller.PC)
	if entry.LoggerName != "" {
		record.AddAttrs(slog.String("logger", entry.LoggerName))
	}
	record.AddAttrs(encode(fields).all()...)
	if entry.Stack != "" {
		record.AddAttrs(slog.String("stacktrace", entry.Stack))
	}
	return c.handler.Handle(context.Background(), record)
}

// Sync does nothing: a slog handler has no buffer that can be flushed.
func (core) Sync() error { return nil }

// encode returns the attributes of fields.
func encode(fields []zapcore.Field) *encoder {
	e := newEncoder()
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			e.add(slog.Any(f.Key, err)) // zap would make it a text
			continue
		}
		f.AddTo(e)
	}
	return e
}

// encoder is a zapcore.ObjectEncoder that collects attributes. groups are the names of the open
// namespaces. levels has the attributes outside of them, and those of each.
type encoder struct {
	groups []string
	levels [][]slog.Attr
}

func newEncoder() *encoder { return &encoder{levels: make([][]slog.Attr, 1)} }

func (e *encoder) add(a slog.Attr) {
	last := len(e.levels) - 1
	e.levels[last] = append(e.levels[last], a)
}

// all returns all attributes, those of namespaces as groups.
func (e *encoder) all() []slog.Attr {
	attrs := e.levels[len(e.levels)-1]
	for i, name := range slices.Backward(e.groups) {
		attrs = append(slices.Clip(e.levels[i]), slog.Attr{Key: name, Value: slog.GroupValue(attrs...)})
	}
	return attrs
}
