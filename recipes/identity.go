package recipes

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity identifies a participant. It is JSON in the data of the participant's node:
// {"host":"...","process":"...","pid":...}.
type Identity struct {
	Host    string `json:"host"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
}

// ParseIdentity returns the identity in the data of a node. It returns nil for other data, such as
// that of other programs.
func ParseIdentity(data []byte) *Identity {
	var id Identity
	if json.Unmarshal(data, &id) != nil || id.Host == "" {
		return nil
	}
	return &id
}

// String returns a text such as "worker[4711] on host-3".
func (i Identity) String() string {
	return fmt.Sprintf("%s[%d] on %s", clip(i.Process), i.PID, clip(i.Host))
}

// clip returns the begin of s with ? in place of what cannot be printed. Any client may have
// written s.
func clip(s string) string {
	const maxBytes = 100
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), maxBytes)])
}
