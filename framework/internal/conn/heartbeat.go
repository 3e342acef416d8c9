package conn

import (
	"slices"
	"time"
)

// A heartbeat is a request that only the ZooKeeper leader can answer. One is sent in each sixth of
// the session timeout, and four times as many while replies do not come in an even stream, or not in time.
//
// The interval is a thousandth of the timeout shorter. Otherwise a heartbeat would be due at the
// same moment as the end of the reply limit of the one before, and chance would decide which comes
// first.
const (
	heartbeatsPerTimeout = 6
	intervalCut          = 1000
)

// maxTimer is the longest wait before the time is compared again. Timers do not run while a machine
// is suspended. Besides, replies may stop coming in an even stream, which shortens the interval.
const maxTimer = time.Second

// Contact is a moment from which a session timeout counts. The session can be relied on for a part
// of that timeout.
type Contact struct {
	At      Stamp
	Timeout time.Duration
}

// Contact returns the moment from which the session timeout counts; see type contact. The session can
// be relied on no longer than each of claimed allows either. A follower that is cut off from the
// ZooKeeper leader still answers reads for a while. Those replies do not count.
func (c *Conn) Contact() (proven Contact, claimed []Contact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Contact{c.contact.countsFrom, c.contact.timeout}, slices.Clone(c.contact.claimed)
}

// RelyOnQuorum sets whether only transactions count as heartbeats. A quorum of the servers agrees
// to each transaction. A ZooKeeper leader that was replaced and does not know it yet still answers
// other requests. It also accepts sessions. So after a reconnect, a connection is not confirmed
// before the first transaction on it, whatever the setting.
func (c *Conn) RelyOnQuorum(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quorum = on
}

// unconfirmed reports whether the connection counts only after a transaction.
func (c *Conn) unconfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.contact.unconfirmed.IsZero()
}

// heartbeat returns a heartbeat that the caller must send at once. It is a sync, or a transaction
// that changes nothing if only transactions count.
func (c *Conn) heartbeat() Request {
	quorum := c.cfg.Handler.Quorum()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quorum, c.lastHeartbeat = quorum, Now()
	if quorum || !c.contact.unconfirmed.IsZero() {
		return Check("/")
	}
	return Sync("/")
}

// keepAlive sends heartbeats on a link until it is closed. It does not wait for the reply to one
// heartbeat before it sends the next.
func (c *Conn) keepAlive(l *link) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := c.untilHeartbeat()
		if due <= 0 {
			if l.isClosed() || !l.ask(c.heartbeat(), func(Reply) {}) { // the reply counts when it is read
				return
			}
			due = c.untilHeartbeat()
		}
		timer.Reset(max(min(due, maxTimer), time.Millisecond))
		select {
		case <-timer.C:
		case <-l.closed:
			return
		}
	}
}

// untilHeartbeat returns the time until the next heartbeat is due.
func (c *Conn) untilHeartbeat() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.contact.untilNext(), time.Millisecond) - c.lastHeartbeat.Elapsed()
}

// noteAnswer records that the ZooKeeper leader has answered a request that was sent at the given
// time.
func (c *Conn) noteAnswer(sent Stamp, transaction bool) {
	received := Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if transaction || !c.quorum && c.contact.unconfirmed.IsZero() {
		c.contact.add(sent, received)
	}
	if received.Since(sent) < c.info.Timeout/6 {
		c.tolerateSlow = false
	}
}

// noteZxid records the zxid of a reply or an event.
func (c *Conn) noteZxid(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, zxid)
}

// lastZxid returns the largest zxid of all replies and events.
func (c *Conn) lastZxid() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zxid
}

// noteRewatched records that all watches are set on the current connection, and that all changes
// before that were reported.
func (c *Conn) noteRewatched() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rewatched = true
}

// watchedZxid returns the zxid up to which the watches have reported all changes. It is called
// between two connections. If the last one was lost while the watches were being set again, some of
// their events may be lost, although the session has seen later transactions.
func (c *Conn) watchedZxid() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rewatched {
		c.watched, c.rewatched = c.zxid, false
	}
	return c.watched
}
