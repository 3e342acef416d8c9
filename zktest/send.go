package zktest

import (
	"net"

	"github.com/docent-zk/docent/zktest/internal/gate"
)

// write is the writing goroutine.
func (c *conn) write() {
	defer c.hangUp()
	for {
		select {
		case <-c.out.wake:
		case <-c.life.done:
			return
		}
		frames, how := c.out.take()
		if !c.send(frames) {
			if how := c.out.hardestEnd(goesOn); how == resetAll { // perhaps the reason of the failure
				c.announceEnd(how)
			}
			return
		}
		if how = c.out.hardestEnd(how); how != goesOn && c.announceEnd(how) {
			return
		}
	}
}

// mostInOneWrite is the size from which a write does not wait for further frames.
const mostInOneWrite = 64 << 10

// send writes frames. With latencies each frame is a separate delivery. It reports false if the
// connection is broken.
func (c *conn) send(frames []outFrame) bool {
	var batch []byte
	for _, f := range frames {
		if len(batch) > 0 && c.endsBatch(len(batch)) {
			if !c.transmit(batch) {
				return false
			}
			batch = batch[:0]
		}
		if !c.departs(f.event) {
			return false
		}
		switch {
		case c.out.hardestEnd(goesOn) != goesOn:
			return true // what was held back is dropped
		case c.swallows.Load():
			c.lost.Store(true)
			c.out.sent(len(f.data))
		default:
			batch = append(batch, f.data...)
		}
	}
	return len(batch) == 0 || c.transmit(batch)
}

func (c *conn) transmit(batch []byte) bool {
	_, err := c.net.Write(batch)
	c.out.sent(len(batch))
	return err == nil
}

// endsBatch reports whether a batch of so many bytes must be written before frames are added.
func (c *conn) endsBatch(size int) bool {
	return c.srv.cfg.seed != nil || size > mostInOneWrite || anyClosed(c.exits()) || c.client.events.Closed()
}

// departs waits while a frame must not be sent yet. A held event does not keep a connection from
// being reset.
func (c *conn) departs(event bool) bool {
	if event && !c.client.events.Pass(c.out.cut) {
		return true
	}
	return c.pass(answerArrives, c.exits()...)
}

// exits returns the gates that all output passes, and the end of the connection too.
func (c *conn) exits() []*gate.Gate {
	return []*gate.Gate{c.client.replies, c.client.frozen, c.srv.paused, c.replica.process}
}

// announceEnd makes the end of the connection visible to the client. It reports false if the end is
// lost in a black hole, which only a reset escapes.
func (c *conn) announceEnd(how ending) bool {
	if !c.departs(false) {
		return true
	}
	how = c.out.hardestEnd(how)
	if how != resetAll && c.swallows.Load() {
		c.lost.Store(true)
		return false
	}
	if how == resetAll {
		reset(c.net)
	}
	return true
}

func (c *conn) hangUp() {
	_ = c.net.Close()
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.end(dropAll)
	c.life.countersOf(c.replica).absorb(c)
	delete(c.life.conns, c)
}

// reset makes the following close send a TCP reset.
func reset(nc net.Conn) {
	switch nc := nc.(type) {
	case *net.TCPConn:
		_ = nc.SetLinger(0)
	case *memory:
		nc.Reset()
	}
}
