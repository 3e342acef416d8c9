package zktest

import (
	"math"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// What the four-letter words count. The server's mutex guards all of it.

// tally is what the words show about a connection.
type tally struct {
	received, sent int
	latency        latency
	shown          lastReply
	arrived        time.Time // of the request that is being carried out; zero without one
}

// lastReply describes the last answer that counts.
type lastReply struct {
	op   string
	xid  int32
	zxid int64
	at   time.Time
}

// latency is in milliseconds. As on the real server, the least latency of a new connection is 0
// until reset.
type latency struct{ count, sum, last, least, most int64 }

func (l *latency) reset() { *l = latency{least: math.MaxInt64} }

func (l *latency) add(ms int64) {
	l.count++
	l.sum += ms
	l.last = ms
	l.least, l.most = min(l.least, ms), max(l.most, ms)
}

func (l *latency) minimum() int64 {
	if l.least == math.MaxInt64 {
		return 0
	}
	return l.least
}

func (l *latency) average() float64 { return float64(l.sum) / float64(max(l.count, 1)) }

// counters count since the start of a server. The tallies of its open connections are added to
// them.
type counters struct {
	received, sent int
	latency        latency
	mask           int64
}

func (l *lifetime) countersOf(r *replica) *counters {
	if l.counters[r] == nil {
		l.counters[r] = &counters{mask: defaultMask}
		l.counters[r].latency.reset()
	}
	return l.counters[r]
}

// absorb adds the tally of a connection.
func (k *counters) absorb(c *conn) {
	k.received += c.tally.received
	k.sent += c.tally.sent
}

// reset sets the counts to 0. Because open connections keep their tallies, it subtracts them.
func (k *counters) reset(conns []*conn) {
	k.received, k.sent = 0, 0
	for _, c := range conns {
		k.received -= c.tally.received
		k.sent -= c.tally.sent
	}
	k.latency.reset()
}

// connsOf returns the connections of a replica, including those that have ended and are not closed
// yet.
func (l *lifetime) connsOf(r *replica) []*conn {
	var all []*conn
	for _, c := range sortedConns(l.conns) {
		if c.replica == r {
			all = append(all, c)
		}
	}
	return all
}

// countReply counts a request that was answered. Logins are not counted, and a failed transaction
// has no name. The caller holds srv.mu.
func (c *conn) countReply(req *proto.Request, code proto.Code, zxid int64) {
	t, now := &c.tally, c.srv.clock.now()
	if req.Op != fault.OpAuth && req.Op != fault.OpSASL {
		last := lastReply{shortNames[req.Op], req.XID, zxid, now}
		if req.XID < 0 { // a ping, for example
			last.xid = t.shown.xid
		}
		if kind := kinds[req.Op]; kind != nil && kind.transacts && code != proto.OK {
			last.op = "NA"
		}
		t.shown = last
		c.countLatency(now.Sub(t.arrived))
	}
	t.arrived = time.Time{}
}

func (c *conn) countLatency(d time.Duration) {
	c.tally.latency.add(d.Milliseconds())
	c.life.countersOf(c.replica).latency.add(d.Milliseconds())
}

// outstanding returns the number of requests that are being carried out: at most one.
func (c *conn) outstanding() int {
	if c.tally.arrived.IsZero() {
		return 0
	}
	return 1
}

// countConnect counts the handshake. The words do not show that a session was resumed. The caller
// holds srv.mu.
func (c *conn) countConnect(newSession bool) {
	c.tally.received++
	if newSession {
		c.countLatency(0)
		c.tally.shown = lastReply{op: "SESS", zxid: c.replica.applied, at: c.srv.clock.now()}
	}
}

// resetTally keeps the request that is being carried out.
func (c *conn) resetTally() {
	c.tally = tally{arrived: c.tally.arrived, shown: lastReply{op: "NA", xid: -1, zxid: -1}}
	c.tally.latency.reset()
}

// shortNames are the names of requests in the words.
var shortNames = map[fault.Op]string{
	fault.OpCreate:               "CREA",
	fault.OpCreate2:              "CREA",
	fault.OpCreateContainer:      "CREA",
	fault.OpCreateTTL:            "CREA",
	fault.OpDelete:               "DELE",
	fault.OpDeleteContainer:      "DELE",
	fault.OpSetData:              "SETD",
	fault.OpSetACL:               "SETA",
	fault.OpMulti:                "MULT",
	fault.OpMultiRead:            "MLTR",
	fault.OpSync:                 "SYNC",
	fault.OpReconfig:             "RECO",
	fault.OpCheck:                "CHEC",
	fault.OpCloseSession:         "CLOS",
	fault.OpCreateSession:        "SESS",
	fault.OpPing:                 "PING",
	fault.OpExists:               "EXIS",
	fault.OpGetData:              "GETD",
	fault.OpGetChildren:          "GETC",
	fault.OpGetChildren2:         "GETC",
	fault.OpGetACL:               "GETA",
	fault.OpGetEphemerals:        "GETE",
	fault.OpGetAllChildrenNumber: "GETACN",
	fault.OpWhoAmI:               "HOMI",
	fault.OpSetWatches:           "SETW",
	fault.OpSetWatches2:          "STW2",
	fault.OpAddWatch:             "ADDW",
	fault.OpCheckWatches:         "CHKW",
	fault.OpRemoveWatches:        "REMW",
}
