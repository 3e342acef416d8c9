package recipes

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity is who a participant is, as the JSON in the data of its node says: {"host":"...","process":"...","pid":...}.
type Identity struct {
	Host    string `json:"host"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
}

// ParseIdentity returns the identity that the data of a node tells, or nil if it tells none, as with nodes of other programs.
func ParseIdentity(data []byte) *Identity {
	var id Identity
	if json.Unmarshal(data, &id) != nil || id.Host == "" {
		return nil
	}
	return &id
}

// String is such as "worker[4711] on host-3".
func (i Identity) String() string {
	return fmt.Sprintf("%s[%d] on %s", clip(i.Process), i.PID, clip(i.Host))
}

// clip makes of what somebody else has written something to show: printable, and not too long.
func clip(s string) string {
	const enough = 100
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), enough)])
}
