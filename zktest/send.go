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
			if how := c.out.harsher(goesOn); how == resetAll { // which may be why
				c.part(how)
			}
			return
		}
		if how = c.out.harsher(how); how != goesOn && c.part(how) {
			return
		}
	}
}

// mostInOneWrite is when frames are sent without waiting for those behind them.
const mostInOneWrite = 64 << 10

// send writes frames; with latencies each is a delivery of its own. It reports false if there is nobody any more to send to.
func (c *conn) send(frames []outFrame) bool {
	var batch []byte
	for _, f := range frames {
		if len(batch) > 0 && (c.srv.cfg.seed != nil || len(batch) > mostInOneWrite || anyClosed(c.exits()) || c.client.events.Closed()) {
			if _, err := c.net.Write(batch); err != nil {
				return false
			}
			batch = batch[:0]
		}
		if !c.departs(f.event) {
			return false
		}
		switch {
		case c.out.harsher(goesOn) != goesOn:
			return true // what was held back is not sent any more
		case c.swallows.Load():
			c.lost.Store(true)
		default:
			batch = append(batch, f.data...)
		}
	}
	if len(batch) == 0 {
		return true
	}
	_, err := c.net.Write(batch)
	return err == nil
}

// departs holds back what must not go out now. An event that is held does not keep a connection from being reset.
func (c *conn) departs(event bool) bool {
	if event && !c.client.events.Pass(c.out.cut) {
		return true
	}
	return c.pass(answerArrives, c.exits()...)
}

// exits are the gates that all pass on their way out, the end of the connection too.
func (c *conn) exits() []*gate.Gate {
	return []*gate.Gate{c.client.replies, c.client.frozen, c.srv.paused, c.replica.process}
}

// part lets the client know of the end. It reports false if that goes into a black hole: only a reset gets out of there.
func (c *conn) part(how ending) bool {
	if !c.departs(false) {
		return true
	}
	how = c.out.harsher(how)
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

// reset makes the close that follows one without ceremony.
func reset(nc net.Conn) {
	switch nc := nc.(type) {
	case *net.TCPConn:
		_ = nc.SetLinger(0)
	case *memory:
		nc.Reset()
	}
}
