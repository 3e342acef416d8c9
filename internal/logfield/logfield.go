// Package logfield makes the log fields of ids. They are in hexadecimal, as in ZooKeeper's own
// tools, so that an id from one can be found in the other. As numbers they would also exceed what
// many readers of JSON can hold.
package logfield

import (
	"fmt"

	"go.uber.org/zap"
)

// Hex is an id as ZooKeeper's tools print it, such as 0x10000a2b3c40001: a session's id, a zxid, or
// a fencing token, which is a zxid.
type Hex int64

// String returns the id in hexadecimal, as the unsigned number that it is on the servers.
func (h Hex) String() string { return fmt.Sprintf("%#x", uint64(h)) }

// Session returns the field of a session's id.
func Session(id int64) zap.Field { return zap.Stringer("session", Hex(id)) }

// Token returns the field of a fencing token.
func Token(token int64) zap.Field { return zap.Stringer("token", Hex(token)) }
