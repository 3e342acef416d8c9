package zktest

import (
	"fmt"
	"math"
	"strconv"
)

func (q *inquiry) counters() *counters { return q.life.countersOf(q.replica) }

// open returns the connections that the words show, including the asker's.
func (q *inquiry) open() []*conn {
	var open []*conn
	for _, c := range q.life.connsOf(q.replica) {
		if !c.ended {
			open = append(open, c)
		}
	}
	return open
}

// total returns the server's counts with those of its open connections.
func (q *inquiry) total() counters {
	total := *q.counters()
	for _, c := range q.life.connsOf(q.replica) {
		total.received += c.tally.received
		total.sent += c.tally.sent
	}
	return total
}

func (q *inquiry) outstanding() int {
	sum := 0
	for _, c := range q.open() {
		sum += c.outstanding()
	}
	return sum
}

func (q *inquiry) mode() string {
	switch {
	case q.srv.readOnly:
		return "read-only"
	case len(q.srv.followers) == 0:
		return "standalone"
	case q.replica == q.srv.leader:
		return "leader"
	}
	return "follower"
}

// version returns a version in the format of 3.6 and later. The Go driver's FLWSrvr expects an
// older format, so it does not understand this server or the real one. The date is fixed because
// this is not a dated build.
func (q *inquiry) version() string {
	number := map[Compat]string{V39: "3.9.5", V38: "3.8.0"}[q.srv.cfg.compat]
	return number + "-docent, built on 1970-01-01 00:00 UTC"
}

func (q *inquiry) srvr() {
	q.title()
	q.status()
}

func (q *inquiry) stat() {
	q.title()
	q.line("Clients:")
	for _, c := range q.open() {
		q.line("%s)", q.summary(c))
	}
	q.line("")
	q.status()
}

func (q *inquiry) title() {
	q.line("Zookeeper version: %s", q.version())
	if q.srv.readOnly {
		q.line("READ-ONLY mode; serving only read-only clients")
	}
}

func (q *inquiry) status() {
	open, total := q.open(), q.total()
	nodes, _, _ := q.size()
	q.line("Latency min/avg/max: %d/%s/%d",
		total.latency.minimum(), javaDouble(total.latency.average()), total.latency.most)
	q.line("Received: %d", total.received)
	q.line("Sent: %d", total.sent)
	q.line("Connections: %d", len(open))
	q.line("Outstanding: %d", q.outstanding())
	q.line("Zxid: 0x%x", q.replica.applied)
	q.line("Mode: %s", q.mode())
	q.line("Node count: %d", nodes)
	if q.mode() == "leader" {
		q.line("Proposal sizes last/min/max: -1/-1/-1") // as before the first proposal
	}
}

// size returns the size of the tree. Like the real server, it counts the root twice.
func (q *inquiry) size() (nodes, ephemerals int, bytes int64) {
	nodes, ephemerals, bytes = q.replica.tree.Size()
	return nodes + 1, ephemerals, bytes
}

// javaDouble formats a number with one to four decimal places.
func javaDouble(f float64) string {
	f = math.Round(f*1e4) / 1e4
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// cons lists the connections. The asker's line has no session, because the asker has none. The Go
// driver's FLWCons reports that line as one that it does not understand, and returns the others.
// The real server sends the same line.
func (q *inquiry) cons() {
	for _, c := range q.open() {
		if c.session == nil {
			q.line("%s)", q.summary(c))
			continue
		}
		q.line("%s,%s)", q.summary(c), q.details(c))
	}
	q.line("")
}

// summary returns the line of a connection without its closing bracket.
func (q *inquiry) summary(c *conn) string {
	interest := 1
	if c == q.asker {
		interest = 0
	}
	return fmt.Sprintf(" /%s[%d](queued=%d,recved=%d,sent=%d",
		c.net.RemoteAddr(), interest, c.outstanding(), c.tally.received, c.tally.sent)
}

func (q *inquiry) details(c *conn) string {
	last, lat, xid, at := c.tally.shown, &c.tally.latency, "", int64(0)
	if last.op == "" {
		last.op = "null"
	}
	if last.xid >= 0 {
		xid = fmt.Sprintf("lcxid=0x%x,", last.xid)
	}
	if !last.at.IsZero() {
		at = last.at.Sub(q.srv.started).Milliseconds()
	}
	return fmt.Sprintf("sid=0x%x,lop=%s,est=%d,to=%d,%slzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
		uint64(c.session.id), last.op, c.since.UnixMilli(), c.session.timeout.Milliseconds(),
		xid, uint64(last.zxid), at, lat.last, lat.minimum(), int64(lat.average()), lat.most)
}

// mntr lists the figures that this server has; the real server has some 400 more. The numbers of
// file descriptors are unknown.
func (q *inquiry) mntr() {
	open, total := q.open(), q.total()
	nodes, ephemerals, bytes := q.size()
	q.figure("version", q.version())
	q.figure("server_state", q.mode())
	q.figure("ephemerals_count", ephemerals)
	q.figure("num_alive_connections", len(open))
	q.figure("avg_latency", javaDouble(total.latency.average()))
	q.figure("outstanding_requests", q.outstanding())
	q.figure("znode_count", nodes)
	q.figure("global_sessions", len(q.srv.sessions))
	q.figure("packets_sent", total.sent)
	q.figure("packets_received", total.received)
	q.figure("watch_count", q.replica.watches.Count())
	q.figure("min_latency", total.latency.minimum())
	q.figure("max_file_descriptor_count", -1)
	q.figure("approximate_data_size", bytes)
	q.figure("open_file_descriptor_count", -1)
	q.figure("local_sessions", 0)
	q.figure("uptime", q.srv.clock.now().Sub(q.life.since).Milliseconds())
	q.figure("max_latency", total.latency.most)
	if q.mode() == "leader" {
		q.figure("synced_followers", len(q.srv.followers))
		q.figure("learners", len(q.srv.followers))
	}
}

func (q *inquiry) figure(name string, value any) { q.line("zk_%s\t%v", name, value) }
