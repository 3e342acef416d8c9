package differential

import (
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// awaitEvents reads until n more events have arrived.
func (c *client) awaitEvents(n int) {
	for until := c.events + n; c.events < until && c.ending == nil; {
		c.read()
	}
}

// awaitAnswers reads until n of the waiting requests have an answer.
func (c *client) awaitAnswers(n int) {
	for left := len(c.waiting) - n; len(c.waiting) > left && c.ending == nil; {
		c.read()
	}
}

// awaitData reads until path has the given data. The number of reads is not in the transcript.
func (s *script) awaitData(path, want string) {
	c := s.connect("asker")
	c.hidden = true
	for until := time.Now().Add(patience); time.Now().Before(until); {
		answer := c.do(rawzk.GetData(path, false))
		if answer.err == 0 && string(rawzk.Decode(answer.body).Buf()) == want {
			c.do(rawzk.CloseSession())
			s.logf("%s has become %q", path, want)
			return
		}
	}
	s.logf("%s has not become %q", path, want)
}

const races = 100

// eventComesBeforeTheValue shows that a client that watches and reads in a loop receives the event
// before the value, in any order of the reads and another client's writes.
func eventComesBeforeTheValue(s *script) {
	writer, reader := s.connect("writer"), s.connect("reader")
	writer.hidden, reader.hidden = true, true
	x := s.path("x")
	writer.do(rawzk.Create(x, []byte("0"), rawzk.Open(), rawzk.Persistent))
	violations := 0
	for i := range races {
		before := string(rawzk.Decode(reader.do(rawzk.GetData(x, true)).body).Buf())
		events := reader.events
		writer.send(rawzk.SetData(x, fmt.Append(nil, i+1), -1))
		for {
			value := string(rawzk.Decode(reader.do(rawzk.GetData(x, false)).body).Buf())
			if value != before && reader.events == events {
				violations++
			}
			if value != before || reader.ending != nil {
				break
			}
		}
		writer.settle()
	}
	s.logf("%d rounds, the value came before its event in %d", races, violations)
}

const (
	watchingReaders = 4
	watchedReads    = 400 // of each client
)

// readIsAnsweredBeforeItsEvent reads with a watch while another client writes as fast as possible.
// A client that gets an event before the reply that sets the watch would miss it, and so would a
// client that gets a reply with a later zxid.
func readIsAnsweredBeforeItsEvent(s *script) {
	writer := s.connect("writer")
	writer.hidden = true
	x := s.path("x")
	writer.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
	results := make([]string, watchingReaders)
	var readers sync.WaitGroup
	for i := range results {
		c := s.connect(fmt.Sprint("reader", i))
		c.hidden = true
		readers.Go(func() { results[i] = c.readAndAwait(x) })
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go writer.setUntil(x, stop, stopped)
	readers.Wait()
	close(stop)
	<-stopped
	for _, result := range results {
		s.logf("%s", result)
	}
}

// readAndAwait reads path and waits for its change, repeatedly, while there are no other requests
// on the server.
func (c *client) readAndAwait(path string) string {
	tooEarly, tooNew := 0, 0
	for i := range watchedReads {
		events := c.events
		answer := c.do(rawzk.GetData(path, true))
		if i > 0 && answer.zxid != mzxid(answer) {
			tooNew++
		}
		if c.events > events {
			tooEarly++
		} else {
			c.awaitEvents(1)
		}
	}
	return fmt.Sprintf("%d events, %d of them too early, %d answers with the zxid of a later change", c.events,
		tooEarly, tooNew)
}

// mzxid returns the mzxid in the answer to getData.
func mzxid(answer reply) int64 {
	d := rawzk.Decode(answer.body)
	d.Buf()
	return d.Stat().Mzxid
}

// setUntil sets path repeatedly until stop is closed.
func (c *client) setUntil(path string, stop, stopped chan struct{}) {
	defer close(stopped)
	for c.ending == nil {
		select {
		case <-stop:
			return
		default:
			c.do(rawzk.SetData(path, nil, -1))
		}
	}
}

// writesTellTheirOwnZxid shows that a reply has the zxid of its own write while many clients write
// at once.
func writesTellTheirOwnZxid(s *script) {
	const writers, each = 3, 300
	wrong := make([]int, writers)
	var all sync.WaitGroup
	for i := range writers {
		c := s.connect(fmt.Sprint("writer", i))
		c.hidden = true
		x := s.path(fmt.Sprint("x", i))
		c.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Persistent))
		all.Go(func() {
			for range each {
				answer := c.do(rawzk.SetData(x, nil, -1))
				if answer.zxid != rawzk.Decode(answer.body).Stat().Mzxid {
					wrong[i]++
				}
			}
		})
	}
	all.Wait()
	s.logf("wrong zxids: %v", wrong)
}
