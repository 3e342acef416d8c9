package zktest

import (
	"cmp"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"time"
)

// javaTime is the format of times in the words.
const javaTime = "Mon Jan 02 15:04:05 MST 2006"

// dump lists sessions by deadline, ephemeral nodes, and connections.
func (q *inquiry) dump() {
	q.line("SessionTracker dump:")
	q.dumpSessions()
	q.line("ephemeral nodes dump:")
	q.dumpEphemerals()
	q.line("Connections dump:")
	q.dumpConns()
}

// dumpSessions lists the deadlines of sessions on a leader, and only their timeouts on a follower,
// which does not expire sessions.
func (q *inquiry) dumpSessions() {
	s := q.srv
	if mode := q.mode(); mode != "standalone" && mode != "leader" {
		q.line("Global Sessions(%d):", len(s.sessions))
		for _, id := range s.sessionIDs() {
			q.line("0x%x\t%dms", uint64(id), s.sessions[id].timeout.Milliseconds())
		}
		return
	}
	q.line("Session Sets (%d)/(%d):", len(s.deadlines()), len(s.sessions))
	for _, at := range s.deadlines() {
		var due []int64
		for _, id := range s.sessionIDs() {
			if s.deadline(s.sessions[id]).Equal(at) {
				due = append(due, id)
			}
		}
		q.line("%d expire at %s:", len(due), at.Format(javaTime))
		for _, id := range due {
			q.line("\t0x%x", uint64(id))
		}
	}
}

// deadlines returns the deadlines of all sessions, sorted, each instant once.
func (s *Server) deadlines() []time.Time {
	var all []time.Time
	for _, sess := range s.sessions {
		all = append(all, s.deadline(sess))
	}
	return instants(all)
}

func instants(times []time.Time) []time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

func (q *inquiry) dumpEphemerals() {
	owners := q.replica.tree.Sessions()
	q.line("Sessions with Ephemerals (%d):", len(owners))
	for _, id := range owners {
		q.line("0x%x:", uint64(id))
		for _, path := range q.replica.tree.Ephemerals(id) {
			q.line("\t%s", path)
		}
	}
}

func (q *inquiry) dumpConns() {
	due := map[time.Time][]*conn{}
	for _, c := range q.open() {
		at := q.idleUntil(c)
		due[at] = append(due[at], c)
	}
	q.line("Connections Sets (%d)/(%d):", len(due), len(q.open()))
	for _, at := range instants(slices.Collect(maps.Keys(due))) {
		q.line("%d expire at %s:", len(due[at]), at.Format(javaTime))
		for _, c := range due[at] {
			q.line("\tip: /%s sessionId: 0x%x", c.net.RemoteAddr(), uint64(c.sessionID()))
		}
	}
}

// idleUntil returns the time at which the real server would end the connection if the client sends
// nothing more.
func (q *inquiry) idleUntil(c *conn) time.Time {
	at := c.since.Add(q.srv.cfg.sessionless)
	if c.session != nil {
		at = c.session.heard.Add(c.session.timeout)
	}
	return q.srv.afterTick(at, q.srv.cfg.sessionless)
}

func (c *conn) sessionID() int64 {
	if c.session == nil {
		return 0
	}
	return c.session.id
}

// Like the real server's, the words about watches leave out watches on children. mntr counts both.

func (q *inquiry) wchs() {
	paths, conns, total := q.replica.watches.DataPaths(), map[*conn]bool{}, 0
	for _, watchers := range paths {
		total += len(watchers)
		for _, c := range watchers {
			conns[c] = true
		}
	}
	q.line("%d connections watching %d paths", len(conns), len(paths))
	q.line("Total watches:%d", total)
}

func (q *inquiry) wchp() {
	paths := q.replica.watches.DataPaths()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		q.line("%s", path)
		for _, c := range bySession(paths[path]) {
			q.line("\t0x%x", uint64(c.session.id))
		}
	}
	q.line("")
}

func (q *inquiry) wchc() {
	paths := map[*conn][]string{}
	for path, watchers := range q.replica.watches.DataPaths() {
		for _, c := range watchers {
			paths[c] = append(paths[c], path)
		}
	}
	for _, c := range bySession(slices.Collect(maps.Keys(paths))) {
		q.line("0x%x", uint64(c.session.id))
		for _, path := range slices.Sorted(slices.Values(paths[c])) {
			q.line("\t%s", path)
		}
	}
	q.line("")
}

func bySession(conns []*conn) []*conn {
	return slices.SortedFunc(slices.Values(conns), func(a, b *conn) int {
		return cmp.Compare(a.session.id, b.session.id)
	})
}

// conf leaves the names of folders empty, because the server has none.
func (q *inquiry) conf() {
	cfg := q.srv.cfg
	q.line("clientPort=%s", q.port())
	q.line("secureClientPort=-1")
	q.line("dataDir=")
	q.line("dataDirSize=0")
	q.line("dataLogDir=")
	q.line("dataLogSize=0")
	q.line("tickTime=%d", cfg.tick.Milliseconds())
	q.line("maxClientCnxns=%d", cfg.maxConns)
	q.line("minSessionTimeout=%d", cfg.least.Milliseconds())
	q.line("maxSessionTimeout=%d", cfg.most.Milliseconds())
	q.line("clientPortListenBacklog=-1")
	q.line("serverId=%d", q.serverID())
}

// serverID returns 0 for a standalone server.
func (q *inquiry) serverID() int {
	if len(q.srv.followers) == 0 {
		return 0
	}
	return q.replica.number
}

// port returns the port to which the asker has connected, or would have.
func (q *inquiry) port() string {
	address := q.replica.memAddr()
	if q.asker != nil {
		address = q.asker.net.LocalAddr().String()
	} else if doors := q.srv.clients[0].doors; len(doors) > 0 {
		address = doors[0].addr
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}

func (q *inquiry) dirs() {
	q.line("datadir_size: 0")
	q.line("logdir_size: 0")
}

// envi has the real server's keys. A value is <NA> if a Go program has none.
func (q *inquiry) envi() {
	const none = "<NA>"
	host, _ := os.Hostname()
	home, _ := os.UserHomeDir()
	folder, _ := os.Getwd()
	q.line("Environment:")
	for _, pair := range [][2]string{
		{"zookeeper.version", q.version()}, {"host.name", host},
		{"java.version", none}, {"java.vendor", none}, {"java.home", none},
		{"java.class.path", none}, {"java.library.path", none},
		{"java.io.tmpdir", os.TempDir()}, {"java.compiler", none},
		{"os.name", runtime.GOOS}, {"os.arch", runtime.GOARCH}, {"os.version", none},
		{"user.name", os.Getenv("USER")}, {"user.home", home}, {"user.dir", folder},
	} {
		q.line("%s=%s", pair[0], pair[1])
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	const mega = 1 << 20
	q.line("os.memory.free=%dMB", (memory.HeapSys-memory.HeapAlloc)/mega)
	q.line("os.memory.max=%dMB", memory.Sys/mega)
	q.line("os.memory.total=%dMB", memory.HeapSys/mega)
}
