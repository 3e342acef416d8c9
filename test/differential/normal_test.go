package differential

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// clockSlack is the difference allowed for the clocks of two processes on one machine.
const clockSlack = 100 * time.Millisecond

// zxid returns z relative to the scenario's start.
func (s *script) zxid(z int64) string {
	switch {
	case z <= 0:
		return fmt.Sprint(z)
	case s.masked:
		return "+?"
	case z < s.base:
		return "old"
	}
	return fmt.Sprintf("+%d", z-s.base)
}

// sessionLabel returns the label of a session id, by the order of appearance.
func (s *script) sessionLabel(id int64) string {
	if id == 0 {
		return "0"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.sessions {
		if known.id == id {
			return fmt.Sprintf("s%d", i+1)
		}
	}
	s.sessions = append(s.sessions, &session{id: id, closed: true}) // cannot be closed without its password
	return fmt.Sprintf("s%d", len(s.sessions))
}

// passwordLabel returns the label of a password, by the order of appearance, with its length if
// that is unusual.
func (s *script) passwordLabel(password []byte) string {
	length := ""
	if len(password) != 16 {
		length = fmt.Sprintf("(%d bytes)", len(password))
	}
	if bytes.Count(password, []byte{0}) == len(password) {
		return "zeros" + length
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.passwords, string(password))
	if i < 0 {
		s.passwords = append(s.passwords, string(password))
		i = len(s.passwords) - 1
	}
	return fmt.Sprintf("p%d%s", i+1, length)
}

// remember keeps the data that is needed to attach to a session again.
func (s *script) remember(id int64, password []byte) *session {
	if id == 0 {
		return nil
	}
	s.sessionLabel(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.sessions {
		if known.id == id {
			known.password, known.closed = password, false
			return known
		}
	}
	return nil
}

func (s *script) stat(st rawzk.Stat) string {
	return fmt.Sprintf("{c=%s m=%s p=%s v=%d cv=%d av=%d owner=%s len=%d kids=%d ctime=%s %s%s}",
		s.zxid(st.Czxid), s.zxid(st.Mzxid), s.zxid(st.Pzxid), st.Version, st.Cversion, st.Aversion,
		s.sessionLabel(st.EphemeralOwner), st.DataLength, st.NumChildren,
		s.when(st.Ctime), mtime(st), s.timesAgree(st))
}

func (s *script) when(ms int64) string {
	at := time.UnixMilli(ms)
	switch {
	case ms == 0:
		return "0"
	case at.Before(s.began.Add(-clockSlack)):
		return "past"
	case at.After(time.Now().Add(clockSlack)):
		return "future"
	}
	return "now"
}

// mtime compares the two times of a Stat. Two changes may have the same millisecond.
func mtime(st rawzk.Stat) string {
	switch {
	case st.Mtime < st.Ctime:
		return "mtime<ctime"
	case st.Mzxid != st.Czxid:
		return "mtime>=ctime"
	case st.Mtime == st.Ctime:
		return "mtime=ctime"
	}
	return "mtime>ctime without a change"
}

// timesAgree returns an error text if one zxid has two times.
func (s *script) timesAgree(st rawzk.Stat) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for zxid, at := range map[int64]int64{st.Czxid: st.Ctime, st.Mzxid: st.Mtime} {
		if known, ok := s.times[zxid]; ok && known != at {
			return " a zxid has two times"
		}
		s.times[zxid] = at
	}
	return ""
}

func sorted(names []string) string {
	if names == nil {
		return "null"
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

func (s *script) acls(list []rawzk.ACL) string {
	if list == nil {
		return "null"
	}
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = fmt.Sprintf("%d/%s/%q", a.Perms, a.Scheme, a.ID)
	}
	if s.sortACLs {
		slices.Sort(texts)
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// leftOver returns the bytes that belong to no field.
func leftOver(d *rawzk.Decoder) string {
	text := ""
	if d.Err() != nil {
		text = " cut short: " + d.Err().Error()
	}
	if len(d.Rest()) > 0 {
		text += " rest=" + hex.EncodeToString(d.Rest())
	}
	return text
}
