package recipes

import (
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/internal/logfield"
)

// Participant is a lock node in a queue, of a holder or a waiter, as the servers have it. A
// holder's client may not have noticed yet that it holds, or may have ended the hold already by its
// own clock.
type Participant struct {
	Node     string    // the node's path, as the client that lists it names it
	Data     []byte    // by default the IP address of the participant; RevokeMessage after Revoke
	Identity *Identity // parsed from Data; nil if Data is something else
	Session  int64     // the session that the node belongs to
	Token    int64     // the node's czxid: its fencing token, if it holds
	Since    time.Time // when the node was created, by the servers' clock: in the queue since then

	// Holds reports whether the node holds the lock: no conflicting node is ahead of it.
	Holds bool
	// HeldSince is a time, by the servers' clock, since which the participant has held the lock
	// without a break. It may have held the lock before, but not before Since. It is the zero Time
	// if the nodes do not prove any such time, and for waiters.
	//
	// Nodes do not record when the one ahead was deleted. They prove only that nothing was deleted
	// since the last node was created. So HeldSince is Since while a participant that did not wait
	// is alone. It is the time at which the last node arrived while others only queue behind. It is
	// zero when the last change of the queue was a deletion. A permit of a semaphore is a node of
	// its own: its HeldSince is Since.
	HeldSince time.Time
}

// String returns a text for people: identity or data, node, session, the time of creation, and
// whether the participant holds the lock.
func (p Participant) String() string {
	name := fmt.Sprintf("%q", clip(string(p.Data)))
	if p.Identity != nil {
		name = p.Identity.String()
	}
	text := fmt.Sprintf("%s, node %s, session %v, since %s", name, p.Node, logfield.Hex(p.Session), timeText(p.Since))
	if p.Holds {
		text += ", holds"
	}
	if !p.HeldSince.IsZero() {
		text += " since " + timeText(p.HeldSince)
	}
	return text
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// MarshalLogObject adds the fields of the participant to a log: node, host, process and pid,
// session, since, holds, and held_since if it is known. Without an Identity it adds data in place
// of host, process and pid.
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
	log.AddBool("holds", p.Holds)
	if !p.HeldSince.IsZero() {
		log.AddTime("held_since", p.HeldSince)
	}
	return nil
}
