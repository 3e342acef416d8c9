package conn

import "time"

// A heartbeat is a request that only the ZooKeeper leader can answer. One is sent each sixth of the session timeout, and four times as
// often where answers do not come in an even stream.
//
// The interval is cut short by a thousandth of the timeout, so that no heartbeat is due at the moment at which the answer to the
// one before is overdue, and it is not up to chance what comes first.
const (
	heartbeatsPerTimeout = 6
	offBeat              = 1000
)

// glance is how often a heartbeat is looked for at least: a machine that was suspended has timers that do not know of it, and answers
// may have ceased to be even.
const glance = time.Second

// Contact is a moment, and the session timeout of which a part may pass since.
type Contact struct {
	At      Stamp
	Timeout time.Duration
}

// Contact is since when the session can be relied on: see type contact. While claimed has a moment the session can be relied on no
// longer than by that either. A follower that is cut off goes on answering reads for a while, which do not count.
func (c *Conn) Contact() (proven, claimed Contact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Contact{c.contact.proof, c.contact.timeout}, Contact{c.contact.claimed, c.contact.granted}
}

// RelyOnQuorum says whether only transactions are to count as heartbeats, to which a quorum of the servers agrees. A ZooKeeper leader
// that has been replaced, and does not know it yet, answers other requests. It admits sessions, too: so a connection that is
// made again counts with the first transaction on it in any case.
func (c *Conn) RelyOnQuorum(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quorum = on
}

// claimed reports whether a transaction has to be made before the connection counts.
func (c *Conn) claimed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.contact.claimed.IsZero()
}

// heartbeat is the next one, to be sent at once: a sync; or a transaction that changes nothing, if only that counts.
func (c *Conn) heartbeat() Request {
	quorum := c.cfg.Handler.Quorum()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quorum, c.beaten = quorum, Now()
	if quorum || !c.contact.claimed.IsZero() {
		return Check("/")
	}
	return Sync("/")
}

// keepAlive sends heartbeats on a link until it is closed, also while the answer to another one has not come.
func (c *Conn) keepAlive(l *link) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := c.untilHeartbeat()
		if due <= 0 {
			l.ask(c.heartbeat(), func(Reply) {}) // the answer counts when it is read
			due = c.untilHeartbeat()
		}
		timer.Reset(max(min(due, glance), time.Millisecond))
		select {
		case <-timer.C:
		case <-l.closed:
			return
		}
	}
}

// untilHeartbeat is the time until the next heartbeat is due.
func (c *Conn) untilHeartbeat() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := c.info.Timeout
	interval := timeout/heartbeatsPerTimeout - timeout/offBeat
	if !c.contact.even {
		interval /= 4
	}
	return max(interval, time.Millisecond) - c.beaten.Elapsed()
}

// heard notes an answer of the ZooKeeper leader to a request that was sent at the given time.
func (c *Conn) heard(sent Stamp, transaction bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if transaction || !c.quorum && c.contact.claimed.IsZero() {
		c.contact.heard(sent, Now())
	}
	if sent.Elapsed() < c.info.Timeout/6 {
		c.patient = false
	}
}

// saw notes the zxid of a reply or an event.
func (c *Conn) saw(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, zxid)
}

// seen is the largest zxid that a reply or an event had.
func (c *Conn) seen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zxid
}
