package znode

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// A protected name is protectedPrefix, a GUID, protectedSeparator, and the requested name. Curator
// uses the same format, and its locks search for it.
const (
	protectedPrefix    = "_c_"
	protectedSeparator = '-'
	guidLength         = 36
	guidEnd            = len(protectedPrefix) + guidLength
)

// GUID returns a new random UUID (version 4) in its canonical form: lower case, with dashes.
func GUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process on an error
	b[6] = b[6]&0x0F | 0x40
	b[8] = b[8]&0x3F | 0x80
	text := make([]byte, 0, guidLength)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

// Protect returns path with guid before its last component: "/p/lock-" gives "/p/_c_<guid>-lock-".
// If the reply to the create is lost, its creator can find the node by the GUID. The parent is
// unchanged.
//
// (Curator: ProtectedUtils.toProtectedZNodePath.)
func Protect(path, guid string) string {
	base := strings.LastIndexByte(path, '/') + 1
	return path[:base] + protectedPrefix + guid + string(protectedSeparator) + path[base:]
}

// IsProtectedBy reports whether [Protect] made the node name with guid. A node name is the last
// component of a path.
func IsProtectedBy(name, guid string) bool {
	rest, found := strings.CutPrefix(name, protectedPrefix)
	if !found {
		return false
	}
	rest, found = strings.CutPrefix(rest, guid)
	return found && rest != "" && rest[0] == protectedSeparator
}

// GUIDOf returns the GUID in a protected node name as it is written there. It returns false if the
// name is not protected. A name with nothing after the protection is not protected, nor is one with
// a UUID without dashes.
//
// (Curator: ProtectedUtils.isProtectedZNode and related methods.)
func GUIDOf(name string) (string, bool) {
	if len(name) <= guidEnd+1 || !strings.HasPrefix(name, protectedPrefix) || name[guidEnd] != protectedSeparator {
		return "", false
	}
	guid := name[len(protectedPrefix):guidEnd]
	if !isUUID(guid) {
		return "", false
	}
	return guid, true
}

// isUUID reports whether s, which has the length of a UUID, is hexadecimal digits with dashes where
// a UUID has them.
func isUUID(s string) bool {
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
