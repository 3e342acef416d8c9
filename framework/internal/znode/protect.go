package znode

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// A protected name is protectedPrefix, a GUID, protectedSeparator, and the name that was asked for. These are Curator's, and
// its locks search for them on the wire.
const (
	protectedPrefix    = "_c_"
	protectedSeparator = '-'
	guidLength         = 36
	guidEnd            = len(protectedPrefix) + guidLength
)

// GUID returns a new random UUID (version 4) in its canonical form: lower case, with dashes.
func GUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
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

// Protect returns path with guid in front of its last component, so that its creator can find the node again if the
// answer to the create is lost: "/p/lock-" becomes "/p/_c_<guid>-lock-". The parent is untouched.
//
// (Curator: ProtectedUtils.toProtectedZNodePath.)
func Protect(path, guid string) string {
	base := strings.LastIndexByte(path, '/') + 1
	return path[:base] + protectedPrefix + guid + string(protectedSeparator) + path[base:]
}

// IsProtectedBy reports whether the node name, the last component of a path, was made by [Protect] with guid.
func IsProtectedBy(name, guid string) bool {
	rest, found := strings.CutPrefix(name, protectedPrefix)
	if !found {
		return false
	}
	rest, found = strings.CutPrefix(rest, guid)
	return found && rest != "" && rest[0] == protectedSeparator
}

// GUIDOf returns the GUID in a protected node name, as it is written there; false if the name is not protected. A name
// that consists of nothing but the protection is not, nor is one whose UUID has no dashes.
//
// (Curator: ProtectedUtils.isProtectedZNode and its kin.)
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

// isUUID reports whether s, of the right length, is hexadecimal digits with dashes where a UUID has them.
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
