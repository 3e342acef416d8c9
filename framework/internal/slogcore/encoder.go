package slogcore

import (
	"log/slog"
	"time"

	"go.uber.org/zap/zapcore"
)

func (e *encoder) OpenNamespace(key string) {
	e.groups, e.levels = append(e.groups, key), append(e.levels, nil)
}

func (e *encoder) AddObject(key string, object zapcore.ObjectMarshaler) error {
	inner := newEncoder()
	err := object.MarshalLogObject(inner)
	e.add(slog.Attr{Key: key, Value: slog.GroupValue(inner.all()...)})
	return err
}

// AddArray adds the elements as zap's own encoder of maps returns them: slog has no arrays.
func (e *encoder) AddArray(key string, array zapcore.ArrayMarshaler) error {
	elements := zapcore.NewMapObjectEncoder()
	err := elements.AddArray(key, array)
	e.add(slog.Any(key, elements.Fields[key]))
	return err
}

func (e *encoder) AddReflected(key string, value any) error {
	e.add(slog.Any(key, value))
	return nil
}

func (e *encoder) AddBinary(key string, value []byte)          { e.add(slog.Any(key, value)) }
func (e *encoder) AddByteString(key string, value []byte)      { e.add(slog.String(key, string(value))) }
func (e *encoder) AddBool(key string, value bool)              { e.add(slog.Bool(key, value)) }
func (e *encoder) AddComplex128(key string, value complex128)  { e.add(slog.Any(key, value)) }
func (e *encoder) AddComplex64(key string, value complex64)    { e.add(slog.Any(key, value)) }
func (e *encoder) AddDuration(key string, value time.Duration) { e.add(slog.Duration(key, value)) }
func (e *encoder) AddFloat64(key string, value float64)        { e.add(slog.Float64(key, value)) }
func (e *encoder) AddFloat32(key string, value float32)        { e.add(slog.Float64(key, float64(value))) }
func (e *encoder) AddInt(key string, value int)                { e.add(slog.Int(key, value)) }
func (e *encoder) AddInt64(key string, value int64)            { e.add(slog.Int64(key, value)) }
func (e *encoder) AddInt32(key string, value int32)            { e.add(slog.Int64(key, int64(value))) }
func (e *encoder) AddInt16(key string, value int16)            { e.add(slog.Int64(key, int64(value))) }
func (e *encoder) AddInt8(key string, value int8)              { e.add(slog.Int64(key, int64(value))) }
func (e *encoder) AddString(key, value string)                 { e.add(slog.String(key, value)) }
func (e *encoder) AddTime(key string, value time.Time)         { e.add(slog.Time(key, value)) }
func (e *encoder) AddUint(key string, value uint)              { e.add(slog.Uint64(key, uint64(value))) }
func (e *encoder) AddUint64(key string, value uint64)          { e.add(slog.Uint64(key, value)) }
func (e *encoder) AddUint32(key string, value uint32)          { e.add(slog.Uint64(key, uint64(value))) }
func (e *encoder) AddUint16(key string, value uint16)          { e.add(slog.Uint64(key, uint64(value))) }
func (e *encoder) AddUint8(key string, value uint8)            { e.add(slog.Uint64(key, uint64(value))) }
func (e *encoder) AddUintptr(key string, value uintptr)        { e.add(slog.Uint64(key, uint64(value))) }
