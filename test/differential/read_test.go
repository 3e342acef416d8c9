package differential

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/docent-zk/docent/internal/rawzk"
)

// read handles the next frame, or the end of the connection.
func (c *client) read() {
	if c.ending != nil {
		return
	}
	frame, err := c.conn.ReadFrame(c.patient)
	if err != nil {
		c.ended(err)
		return
	}
	d := rawzk.Decode(frame)
	h := d.Header()
	switch {
	case d.Err() != nil:
		c.logf("  got %x, which is no reply", frame)
	case h.Xid == -1 && !c.expects(-1):
		c.events++
		c.logf("  %s", c.script.event(h, d))
	default:
		c.answered(reply{xid: h.Xid, zxid: h.Zxid, err: h.Err, body: d.Rest()})
	}
}

func (c *client) expects(xid int32) bool {
	for _, r := range c.waiting {
		if r.xid == xid {
			return true
		}
	}
	return false
}

// ended notes how the connection ended. A FIN and a reset count as the same. Which of them the
// kernel of a closing server sends depends on the received data that was not read.
func (c *client) ended(err error) {
	c.ending = err
	for _, r := range c.waiting { // answers that have not been shown yet
		if !r.answer.missing {
			c.show(r)
		}
	}
	switch {
	case errors.Is(err, rawzk.ErrTimeout):
		c.logf("  nothing came")
	case err == rawzk.ErrClosed, errors.Is(err, rawzk.ErrReset):
		c.logf("  ended")
	default:
		c.logf("  ended: %v", err)
	}
}

// answered matches a reply with its request. Only replies to auth and sasl may overtake others;
// they are shown in order.
func (c *client) answered(a reply) {
	i := c.find(a.xid)
	if i < 0 {
		c.logf("  unexpected reply #%d err=%d zxid=%s body=%x", a.xid, a.err, c.script.zxid(a.zxid), a.body)
		return
	}
	*c.waiting[i].answer = a
	if i > 0 && overtakes(c.waiting[i].op.Code) {
		return
	}
	for ; i > 0; i-- {
		c.shift()
	}
	c.shift()
	for len(c.waiting) > 0 && !c.waiting[0].answer.missing {
		c.shift()
	}
}

func overtakes(code int32) bool { return code == rawzk.OpAuth || code == rawzk.OpSasl }

// find returns the index of the request that a reply belongs to: the oldest with its xid. All pings
// have the same answer.
func (c *client) find(xid int32) int {
	for i, r := range c.waiting {
		if r.answer.missing && (r.xid == xid || xid == -2 && r.op.Code == rawzk.OpPing) {
			return i
		}
	}
	return -1
}

// shift shows the oldest request's answer.
func (c *client) shift() {
	r := c.waiting[0]
	c.waiting = c.waiting[1:]
	if r.answer.missing {
		c.logf("  #%d was skipped", r.xid)
		return
	}
	c.show(r)
}

func (c *client) show(r *request) {
	a := r.answer
	if r.op.Code == rawzk.OpCloseSession && a.err == 0 && c.session != nil {
		c.session.closed = true
	}
	if r.op.Text == barrierText && a.err == 0 {
		return
	}
	c.logf("  #%d %s zxid=%s%s", a.xid, errorText(a.err), c.script.zxid(a.zxid), c.bodyText(r))
}

func (c *client) bodyText(r *request) string {
	switch {
	case r.answer.err != 0 && len(r.answer.body) > 0:
		return " body=" + hex.EncodeToString(r.answer.body)
	case r.answer.err != 0:
		return ""
	}
	text := c.script.body(r.op.Code, r.answer.body)
	if r.op.Code == rawzk.OpWhoAmI {
		text = strings.ReplaceAll(text, c.host(), "own address") // in memory, each client has its own
	}
	if text != "" {
		text = " " + text
	}
	return text
}

// host returns this end's address without its port.
func (c *client) host() string {
	host, _, err := net.SplitHostPort(c.conn.LocalAddr().String())
	if err != nil {
		c.script.giveUp("own address: %v", err)
	}
	return host
}

var errorNames = map[int32]string{
	-1: "SystemError", -2: "RuntimeInconsistency", -5: "MarshallingError", -6: "Unimplemented", -8: "BadArguments",
	-101: "NoNode", -102: "NoAuth", -103: "BadVersion", -108: "NoChildrenForEphemerals", -110: "NodeExists",
	-111: "NotEmpty", -112: "SessionExpired", -114: "InvalidACL", -115: "AuthFailed", -119: "NotReadOnly",
	-121: "NoWatcher", -123: "ReconfigDisabled", -125: "QuotaExceeded", -127: "ThrottledOp",
}

func errorText(code int32) string {
	if code == 0 {
		return "ok"
	}
	return fmt.Sprintf("%s(%d)", errorNames[code], code)
}
