package recipes

import (
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/internal/logfield"
)

// Participant is a lock node in a queue.
type Participant struct {
	Node     string    // the node's path
	Data     []byte    // by default the participant's IP address; RevokeMessage once a client asks for its release
	Identity *Identity // parsed from Data; nil if Data is something else
	Session  int64     // that the node belongs to
	Token    int64     // the node's czxid: its fencing token, if it holds
	Since    time.Time // when the node was created, by the server's clock
}

// String returns a text for people: identity or data, node, session, and the time of creation.
func (p Participant) String() string {
	name := fmt.Sprintf("%q", clip(string(p.Data)))
	if p.Identity != nil {
		name = p.Identity.String()
	}
	since := p.Since.UTC().Format(time.RFC3339Nano)
	return fmt.Sprintf("%s, node %s, session %v, since %s", name, p.Node, logfield.Hex(p.Session), since)
}

// MarshalLogObject adds the fields of the participant to a log: node, host, process and pid,
// session and since. Without an Identity it adds data in place of host, process and pid.
func (p Participant) MarshalLogObject(log zapcore.ObjectEncoder) error {
	log.AddString("node", p.Node)
	if p.Identity != nil {
		log.AddString("host", clip(p.Identity.Host))
		log.AddString("process", clip(p.Identity.Process))
		log.AddInt("pid", p.Identity.PID)
	} else {
		log.AddString("data", clip(string(p.Data)))
	}
	log.AddString("session", logfield.Hex(p.Session).String())
	log.AddTime("since", p.Since)
	return nil
}
