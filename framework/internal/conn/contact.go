package conn

import (
	"slices"
	"time"
)

// contact is what answered requests tell of a session's contact with the ZooKeeper leader, which counts the session's timeout.
//
// A follower reports to the leader twice a tick which sessions it has heard of. An answer that only the leader can have given shows that
// the follower was connected to the leader then, and nothing about the report. But the stream from a follower to the leader keeps
// its order. So an answer to a request that was sent at time s shows more if an earlier request, sent at time e, had been answered a
// while before s: the follower has known since then that the session was alive at e, has reported it, and the report was ahead of
// the later request. The leader therefore counts the session's timeout from e or later.
//
// Where answers come in an even stream, e is a heartbeat before s. After a pause of this process, a standstill of the network or
// of the leader there is no such e after the gap until two answers have come one after the other, however many come at once.
type contact struct {
	beat   time.Duration // the time between heartbeats
	report time.Duration // how long before a request another one must have been answered to have been reported ahead of it

	// answered are requests of the past, by the time they were sent: first the last one that is known to have been reported, then those
	// that may be known to be with a later answer.
	answered []exchange
	claimed  Stamp // when a connect request was sent whose answer is not relied on yet; zero if there is none

	proof   Stamp         // the session can be relied on as if the leader had heard of it then, a heartbeat after it last did
	timeout time.Duration // that goes with proof
	granted time.Duration // of the present connection, which goes with claimed
	even    bool          // answers come as they should
}

// exchange is a request and its answer.
type exchange struct{ sent, received Stamp }

// Reports take half a tick at most. These are fractions of a session's timeout, which is at least four ticks, or eight where
// a leader that was paused must not deceive: it answers for up to a tick before it finds out that it has been replaced.
const (
	reportFraction = 8
	// A server that grants a longer timeout than was asked for has told its shortest one, which is two ticks by default.
	shortReportFraction = 3
	// samples is how many exchanges are remembered in the time between two heartbeats.
	samples = 16
)

// counts notes which session timeout was granted, and which the connect request asked for.
func (c *contact) counts(asked, granted time.Duration) {
	c.granted, c.beat, c.report = granted, granted/heartbeatsPerTimeout, granted/reportFraction
	if granted > asked {
		c.report = granted / shortReportFraction
	}
}

// begin notes that the leader has let the session in on another connection, whose connect request was sent at the given time. Another
// connection is another stream: what was answered on the one before says nothing about it.
func (c *contact) begin(sent Stamp) {
	c.answered = append(c.answered[:0], exchange{sent, sent.Add(-c.report)})
	c.proof, c.timeout, c.claimed = sent, c.granted, Stamp{}
	c.even = c.report <= c.beat
}

// claim is begin where the word of a single server is not enough: it counts with the next answer that is heard. Until then the session can
// be relied on as before, and no longer than if it counted: a leader counts the timeout that was granted last.
func (c *contact) claim(sent Stamp) {
	c.answered, c.even, c.claimed = c.answered[:0], false, sent
}

// heard notes that a request was answered that the leader had to answer. It moves proof to no more than the time between two heartbeats
// after the last request that is known to have been reported.
func (c *contact) heard(sent, received Stamp) {
	if !c.claimed.IsZero() {
		c.begin(c.claimed)
	}
	known := slices.IndexFunc(c.answered, func(x exchange) bool { return sent.awake(x.received) < c.report })
	if known < 0 {
		known = len(c.answered)
	}
	if known == 0 {
		return // it was sent before anything that is known
	}
	c.answered = slices.Delete(c.answered, 0, known-1)
	reported := c.answered[0].sent
	proof := sent
	if sent.Since(reported) > c.beat {
		proof = reported.Add(c.beat)
	}
	c.even = c.report <= c.beat && sent.Since(reported) <= 2*c.beat
	if proof.After(c.proof) {
		c.proof = proof
	}
	if last := c.answered[len(c.answered)-1]; sent.Since(last.sent) >= c.beat/samples {
		c.answered = append(c.answered, exchange{sent, received})
	}
}
