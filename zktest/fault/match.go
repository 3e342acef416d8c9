package fault

import (
	"fmt"
	"math"
	"path"
	"strings"
)

// Always as [Match.Times] makes a rule fire for every matching request.
const Always = math.MaxInt

// Match selects requests. The zero Match selects the next request of any type from any client. A
// multi is one request; its parts are not requests.
type Match struct {
	// Op is the type of the request. AnyOp, the zero value, stands for all types, pings included,
	// except OpConnect.
	Op Op
	// Path is compared with the path that the request names, or with the path of the first part of
	// a multi. If it contains one of * ? [ it is a pattern of [path.Match] for the whole path, in
	// which * stays within one level. Otherwise the request's path must begin with it. Requests
	// without a path match only if Path is empty. A client with a chroot sends full paths.
	Path string
	// Client is the name of a client of a zktest.Server. The empty name stands for any client.
	Client string
	// Skip is the number of matching requests that pass before the rule fires.
	Skip int
	// Times is the number of times that the rule fires; 0 means once.
	Times int
}

// String returns a description for messages.
func (m Match) String() string {
	s := strings.TrimSpace(m.Op.String() + " " + m.Path)
	if m.Client != "" {
		s += " of " + m.Client
	}
	return s
}

// validate returns an error if no request can match.
func (m Match) validate() error {
	known := m.Op.known() && m.Op != OpCheck
	_, malformed := path.Match(m.Path, "")
	switch {
	case m.Skip < 0 || m.Times < 0:
		return fmt.Errorf("negative skip %d or times %d", m.Skip, m.Times)
	case m.isPattern() && malformed != nil:
		return malformed
	case m.Path != "" && !strings.HasPrefix(m.Path, "/"):
		return fmt.Errorf("want a path with a leading /")
	case !known:
		return fmt.Errorf("clients send no such request")
	case m.Path != "" && m.Op != AnyOp && !m.Op.PathFirst() && m.Op != OpMulti && m.Op != OpMultiRead:
		return fmt.Errorf("such requests have no path")
	}
	return nil
}

func (m Match) isPattern() bool { return strings.ContainsAny(m.Path, "*?[") }

func (m Match) selects(req Request) bool {
	switch {
	case m.Op != AnyOp && m.Op != req.Op, m.Op == AnyOp && req.Op == OpConnect,
		m.Client != "" && m.Client != req.Client:
		return false
	case m.Path == "":
		return true
	case req.Path == "":
		return false
	case m.isPattern():
		ok, _ := path.Match(m.Path, req.Path) // validate has checked the pattern
		return ok
	}
	return strings.HasPrefix(req.Path, m.Path)
}
