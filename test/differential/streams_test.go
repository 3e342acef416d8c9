package differential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestStreams(t *testing.T) {
	compare(t, group{scenarios: []scenario{
		requestsMayComeByteByByte,
		requestsMayComeInAnyPieces,
		resetKeepsTheSession,
		slowReaderDelaysNoOther,
		eventsOfAllWritersAreComplete,
		manySessionsAtOnce,
	}})
}

func requestsMayComeByteByByte(s *script) {
	c := s.open("c")
	for _, b := range rawzk.Frame(newSession(defaultLongest).Encode()) {
		c.sendBytes([]byte{b})
	}
	c.awaitConnected()
	for i, op := range s.requests() {
		c.expect(int32(i), op)
		for _, b := range rawzk.Frame(rawzk.Request(int32(i), op)) {
			c.sendBytes([]byte{b})
		}
		c.settle()
	}
	c.close()
}

// requestsMayComeInAnyPieces sends pieces, none of which begins or ends where a request does.
func requestsMayComeInAnyPieces(s *script) {
	for _, size := range []int{3, 5, 7, 64, 1000} {
		c := s.connect(fmt.Sprint("pieces of ", size))
		var all []byte
		for i, op := range s.requests() {
			c.expect(int32(i), op)
			all = append(all, rawzk.Frame(rawzk.Request(int32(i), op))...)
		}
		for len(all) > 0 {
			n := min(size, len(all))
			c.sendBytes(all[:n])
			all = all[n:]
		}
		c.settle()
		c.close()
	}
}

func resetKeepsTheSession(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.do(rawzk.GetData(s.path("x"), true))
	if err := a.conn.Reset(); err != nil {
		s.giveUp("reset: %v", err)
	}
	b := s.attach("b", a)
	b.do(rawzk.GetEphemerals("/"))
	b.do(rawzk.SetData(s.path("x"), []byte("1"), -1))
	b.close()
}

// slowReaderDelaysNoOther has a client that requests more than the network can buffer, and reads
// nothing.
func slowReaderDelaysNoOther(s *script) {
	const reads, size = 200, 200_000
	slow, quick := s.connect("slow"), s.connect("quick")
	x := s.path("x")
	quick.do(rawzk.Create(x, []byte(strings.Repeat("x", size)), rawzk.Open(), rawzk.Ephemeral))
	slow.do(rawzk.AddWatch(x, 0))
	slow.hidden = true
	for range reads {
		slow.send(rawzk.GetData(x, false))
	}
	for i := range 10 {
		quick.do(rawzk.SetData(s.path(""), fmt.Append(nil, i), -1))
		quick.do(rawzk.GetData(s.path(""), false))
	}
	first, last := slow.waiting[0].answer, slow.waiting[reads-1].answer
	slow.settle()
	s.logf("the first answer has %d bytes, the last %d", len(first.body), len(last.body))
	slow.hidden = false
	slow.do(rawzk.WhoAmI())
	quick.close()
	slow.barrier()
	slow.close()
}

// eventsOfAllWritersAreComplete shows that a recursive watch sees every change of several
// concurrent writers.
func eventsOfAllWritersAreComplete(s *script) {
	const writers, each = 4, 50
	watcher := s.connect("watcher")
	watcher.do(rawzk.AddWatch(s.path(""), 1))
	watcher.hidden = true
	clients := make([]*client, writers)
	for i := range clients {
		clients[i] = s.connect(fmt.Sprint("writer", i))
		clients[i].hidden = true
		var ops []rawzk.Op
		for j := range each {
			x := s.path(fmt.Sprintf("x%d-%d", i, j))
			ops = append(ops, rawzk.Create(x, nil, rawzk.Open(), 0), rawzk.SetData(x, nil, 0), rawzk.Delete(x, 1))
		}
		clients[i].pipeline(ops...)
	}
	for _, c := range clients {
		c.settle()
	}
	watcher.barrier()
	s.logf("%d events", watcher.events)
	watcher.hidden = false
	watcher.do(rawzk.Exists(s.path(""), false))
}

func manySessionsAtOnce(s *script) {
	const sessions = 100
	clients := make([]*client, sessions)
	for i := range clients {
		clients[i] = s.connect(fmt.Sprint("c", i))
		clients[i].hidden = true
		clients[i].send(rawzk.Create(s.path("e-"), nil, rawzk.Open(), rawzk.EphemeralSequential))
	}
	for _, c := range clients {
		c.settle()
	}
	clients[0].hidden = false
	clients[0].do(rawzk.GetChildren2(s.path(""), false))
	for i, c := range clients {
		if i%2 == 1 {
			c.do(rawzk.CloseSession())
		}
	}
	answer := clients[0].do(rawzk.Exists(s.path(""), false))
	s.logf("%d children are left", rawzk.Decode(answer.body).Stat().NumChildren)
	clients[0].close()
}
