package redislock

import "errors"

// ErrUpgrade means that the write side of a read-write lock was to be acquired under a read hold of the
// same Client: it would wait for that hold. Release the read hold first.
var ErrUpgrade = errors.New("redislock: a read hold cannot be upgraded")

// ReadWrite is a lock that any number of readers share, or one writer has alone. It has no state of its
// own: all ReadWrite values of one name are the same lock. It is safe for concurrent use.
//
// A writer that waits keeps new readers waiting, so readers do not starve it. If it crashes, they go on
// after the time to live. There is no order otherwise: among writers, and where writers follow one
// another without a pause, readers may wait for long.
type ReadWrite struct{ read, write Lock }

// What the owners of each side begin with. The scripts know that of a writer.
const (
	reader = "read:"
	writer = "write:"
)

// NewReadWrite returns the read-write lock of a name. It makes no request. It fails like New. A lock of
// another kind must have another name: each fails with WRONGTYPE while the other is held.
func NewReadWrite(c *Client, name string) (*ReadWrite, error) {
	l, keys, err := newLock(c, name, "waiting")
	if err != nil {
		return nil, err
	}
	rw := &ReadWrite{*l, *l}
	side := func(l, other *Lock, as string, acquire *script) {
		released := l.beside("released:")
		l.as, l.ch, l.other, l.reentry = as, released+as, other, reentry{c, as, l.key}
		l.kind = &single{
			c: c, keys: keys, channel: released, records: as == writer,
			acquireScript: acquire, renewScript: renewAmongScript, releaseScript: releaseSideScript,
		}
	}
	side(&rw.read, &rw.write, reader, acquireReadScript)
	side(&rw.write, &rw.read, writer, acquireWriteScript)
	return rw, nil
}

// Read returns the side that readers share. Each reader has an own time to live, deadline and token,
// which is larger than those of all earlier readers and writers. Under a write hold of the same Client
// an acquire of the read side shares that hold: it is a writer's until the last release.
func (l *ReadWrite) Read() *Lock { return &l.read }

// Write returns the side that one writer has alone. Under a read hold of the same Client an acquire
// fails with ErrUpgrade.
func (l *ReadWrite) Write() *Lock { return &l.write }
