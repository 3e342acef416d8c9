package differential

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docent-zk/docent/internal/rawzk"
)

// body returns the body of a successful reply to a request of the given type as text.
func (s *script) body(code int32, body []byte) string {
	d := rawzk.Decode(body)
	text := s.fields(code, d)
	return strings.TrimSpace(text + leftOver(d))
}

func (s *script) fields(code int32, d *rawzk.Decoder) string {
	switch code {
	case rawzk.OpCreate, rawzk.OpSync:
		return fmt.Sprintf("path=%q", d.Str())
	case rawzk.OpCreate2, rawzk.OpCreateContainer, rawzk.OpCreateTTL:
		return fmt.Sprintf("path=%q ", d.Str()) + s.stat(d.Stat())
	case rawzk.OpExists, rawzk.OpSetData, rawzk.OpSetACL:
		return s.stat(d.Stat())
	case rawzk.OpGetData, rawzk.OpReconfig:
		return "data=" + rawzk.Quote(d.Buf()) + " " + s.stat(d.Stat())
	case rawzk.OpGetACL:
		return "acl=" + s.acls(d.ACLs()) + " " + s.stat(d.Stat())
	case rawzk.OpGetChildren, rawzk.OpGetEphemerals:
		return "names=" + sorted(d.Strs())
	case rawzk.OpGetChildren2:
		return "names=" + sorted(d.Strs()) + " " + s.stat(d.Stat())
	case rawzk.OpGetAllChildrenNumber, rawzk.OpAddWatch:
		return fmt.Sprint(d.Int())
	case rawzk.OpMulti, rawzk.OpMultiRead:
		return s.results(d)
	case rawzk.OpWhoAmI:
		return identities(d)
	case rawzk.OpSasl:
		return "token=" + rawzk.Quote(d.Buf())
	}
	return ""
}

// results returns the parts of a multi's reply as text.
func (s *script) results(d *rawzk.Decoder) string {
	var parts []string
	for d.Err() == nil {
		code, done, err := d.Int(), d.Byte(), d.Int()
		if code == -1 && done != 0 {
			parts = append(parts, fmt.Sprintf("end(%d %d)", done, err))
			break
		}
		parts = append(parts, fmt.Sprintf("(%d %d %d %s)", code, done, err, s.result(code, d)))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func (s *script) result(code int32, d *rawzk.Decoder) string {
	if code == -1 {
		return fmt.Sprint(d.Int())
	}
	return s.fields(code, d)
}

func identities(d *rawzk.Decoder) string {
	n := d.Count(8)
	if n < 0 {
		return "null"
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s:%q", d.Str(), d.Str())
	}
	slices.Sort(ids)
	return fmt.Sprint(ids)
}

// event returns a watch event as text.
func (s *script) event(h rawzk.Header, d *rawzk.Decoder) string {
	kind, state, path := d.Int(), d.Int(), d.Str()
	name, known := map[int32]string{1: "Created", 2: "Deleted", 3: "DataChanged", 4: "ChildrenChanged"}[kind]
	if !known {
		name = fmt.Sprintf("event %d", kind)
	}
	return fmt.Sprintf("%s %q state=%d zxid=%s err=%d%s", name, path, state, s.zxid(h.Zxid), h.Err, leftOver(d))
}
