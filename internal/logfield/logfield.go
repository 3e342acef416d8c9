// Package logfield makes the log fields of ids that ZooKeeper's own tools show in hexadecimal, so
// that one can be searched for where the other was found. As numbers they would also be more than
// many readers of JSON can hold.
package logfield

import (
	"fmt"

	"go.uber.org/zap"
)

// Hex is an id as ZooKeeper's tools print it, such as 0x10000a2b3c40001: a session's id, a zxid, a
// fencing token, which is a zxid.
type Hex int64

// String is the id in hexadecimal, as the unsigned number that it is on the servers.
func (h Hex) String() string { return fmt.Sprintf("%#x", uint64(h)) }

// Session is the field of a session's id.
func Session(id int64) zap.Field { return zap.Stringer("session", Hex(id)) }

// Token is the field of a fencing token.
func Token(token int64) zap.Field { return zap.Stringer("token", Hex(token)) }
