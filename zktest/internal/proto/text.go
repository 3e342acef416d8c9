package proto

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the string that the server, which uses UTF-16, decodes from bytes that should be
// UTF-8.
func Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 && isSurrogate(b) {
			size = 3 // replaced as a whole
		}
		s.WriteRune(r)
		b = b[size:]
	}
	return s.String()
}

// isSurrogate reports whether b begins with a surrogate half in UTF-8 form.
func isSurrogate(b []byte) bool {
	return len(b) >= 3 && b[0] == 0xed && b[1] >= 0xa0 && b[1] <= 0xbf && b[2]&0xc0 == 0x80
}

// unitwise returns s in the server's encoding: each UTF-16 unit is encoded separately.
func unitwise(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r > 0xffff }) < 0 {
		return s
	}
	var b []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		if utf16.IsSurrogate(rune(unit)) {
			b = append(b, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0xbf, 0x80|byte(unit)&0xbf)
			continue
		}
		b = utf8.AppendRune(b, rune(unit))
	}
	return string(b)
}
