package conn

import (
	"slices"
	"time"
)

// contact computes from answered requests when the ZooKeeper leader last heard of the session. The
// ZooKeeper leader counts the session timeout from then.
//
// Twice a tick, a follower reports to the leader which sessions it has heard of. A reply that only
// the leader can give proves that the follower was connected to the leader. It proves nothing about
// the report. But the stream from a follower to the leader keeps its order. Take a request sent at
// time s, and an earlier request sent at time e that was answered some time before s. The follower
// has known since that answer that the session was alive at e. It has reported that before it sent
// the later request on. So once the later request is answered, the leader counts the session
// timeout from e or later.
//
// While replies come in an even stream, e is one heartbeat before s. After a pause of this process,
// the network or the leader there is no such e after the gap, until two replies have come one after
// the other. Many replies at once do not help. If all replies are late, e is long before s. The closer
// the heartbeats are then, the less e is older than it need be.
type contact struct {
	interval    time.Duration // between heartbeats
	reportDelay time.Duration // a request answered this long before another one was reported before it

	// answered are past requests in the order of sending. The first is the last one that is known to
	// have been reported. A later reply may show that the others have been reported too.
	answered []exchange

	// unconfirmed is when the connect request of an unconfirmed connection was sent, or zero.
	unconfirmed Stamp

	// claimed has the unconfirmed connections since a connection was confirmed: the first one, and those on which
	// a shorter timeout was granted than before.
	claimed []Contact

	// countsFrom is a moment at most one heartbeat interval after the leader is known to have heard
	// of the session. The client counts the session timeout from then.
	countsFrom Stamp

	timeout time.Duration // counts from countsFrom
	granted time.Duration // the shortest that a server has granted the session
	even    bool          // whether replies come in an even stream, and in time
}

// exchange has the times of a request and its reply.
type exchange struct{ sent, received Stamp }

// A report takes half a tick at most. A session timeout is at least four ticks. It is at least
// eight where a paused leader must not deceive: a leader answers for up to a tick before it finds
// out that it was replaced.
const (
	// reportFraction is the session timeout divided by the time that a report may take.
	reportFraction = 8
	// shortReportFraction replaces reportFraction if the server granted a longer timeout than
	// requested. Then the timeout is the shortest that the server allows, which is two ticks by
	// default.
	shortReportFraction = 3
	// evenFraction is the session timeout divided by the age of countsFrom up to which replies come in an
	// even stream. If it is older when a reply comes, the next one may come too late.
	evenFraction = 4
	// samples is how many exchanges are kept of the time between two heartbeats.
	samples = 16
)

// setTimeouts records the timeout that the connect request asked for, and the granted one.
//
// The session keeps to the shortest timeout that a server has granted it. A server grants each connection a
// timeout. The ZooKeeper leader counts the one of the request that it has heard of last, and that may be an
// earlier request on an earlier connection. A new leader counts the one that the session was created with.
func (c *contact) setTimeouts(asked, granted time.Duration) {
	shortest := granted
	if c.granted > 0 {
		shortest = min(granted, c.granted)
	}
	c.granted, c.interval, c.reportDelay = shortest, shortest/heartbeatsPerTimeout, shortest/reportFraction
	if granted > asked {
		c.reportDelay = granted / shortReportFraction
	}
}

// restart records that the leader has accepted the session on a new connection. sent is when the
// connect request was sent. A new connection is a new stream: replies on the one before prove
// nothing about it.
func (c *contact) restart(sent Stamp) {
	c.answered = append(c.answered[:0], exchange{sent, sent.Add(-c.reportDelay)})
	c.countsFrom, c.timeout, c.unconfirmed, c.claimed = sent, c.granted, Stamp{}, nil
	c.even = c.reportDelay <= c.interval
}

// reconnect records a connection that the word of one server does not confirm. The connection
// counts from the next reply that add records, as if restart had been called. Until then the
// session can be relied on as before, but no longer than if any connection since the last confirmed one
// counted: a replaced leader may have accepted the last one only.
func (c *contact) reconnect(sent Stamp) {
	if last := len(c.claimed) - 1; last < 0 || c.granted < c.claimed[last].Timeout {
		c.claimed = append(c.claimed, Contact{sent, c.granted})
	}
	c.answered, c.even, c.unconfirmed = c.answered[:0], false, sent
}

// add records an answered request that only the leader could answer. It moves countsFrom to at most
// one heartbeat interval after the last request that is known to have been reported.
func (c *contact) add(sent, received Stamp) {
	if !c.unconfirmed.IsZero() {
		c.restart(c.unconfirmed)
	}
	known := slices.IndexFunc(c.answered, func(x exchange) bool { return sent.sinceAwake(x.received) < c.reportDelay })
	if known < 0 {
		known = len(c.answered)
	}
	if known == 0 {
		return // it was sent before all known requests
	}
	c.answered = slices.Delete(c.answered, 0, known-1)
	reported := c.answered[0].sent
	from := sent
	if sent.Since(reported) > c.interval {
		from = reported.Add(c.interval)
	}
	if from.After(c.countsFrom) {
		c.countsFrom = from
	}
	c.even = c.reportDelay <= c.interval && received.Since(c.countsFrom) <= c.granted/evenFraction
	if last := c.answered[len(c.answered)-1]; sent.Since(last.sent) >= c.interval/samples {
		c.answered = append(c.answered, exchange{sent, received})
	}
}

// untilNext returns the time between two heartbeats.
func (c *contact) untilNext() time.Duration {
	interval := c.interval - c.granted/intervalCut
	if !c.even {
		interval /= 4
	}
	return interval
}
