package memnet

import "time"

// inbound is what was sent to one end and not read there yet. A part of it may still be on its way.
type inbound struct {
	schedule Schedule
	last     time.Time // the latest arrival so far
	queue    []delivery
	fin, rst time.Time // arrival of the end of the stream and of a reset; zero if none was sent
}

// delivery is what one Write sent.
type delivery struct {
	at   time.Time
	data []byte
}

// arrival says when something arrives that is sent now.
func (in *inbound) arrival(now time.Time) time.Time {
	at := now
	if in.schedule != nil {
		at = in.schedule(now)
	}
	in.last = latest(at, now, in.last)
	return in.last
}

// next is the arrival of what is to be read next, or zero if nothing was sent.
func (in *inbound) next() time.Time {
	switch {
	case len(in.queue) > 0:
		return in.queue[0].at
	case !in.fin.IsZero(): // a reset never comes before it
		return in.fin
	default:
		return in.rst
	}
}

// read moves data that has arrived into p.
func (in *inbound) read(p []byte, now time.Time) (n int) {
	for n < len(p) && len(in.queue) > 0 && reached(in.queue[0].at, now) {
		head := &in.queue[0]
		part := copy(p[n:], head.data)
		n += part
		head.data = head.data[part:]
		if len(head.data) == 0 {
			in.drop()
		}
	}
	return n
}

// drop removes the first delivery, and the memory of the queue with the last.
func (in *inbound) drop() {
	in.queue[0] = delivery{}
	in.queue = in.queue[1:]
	if len(in.queue) == 0 {
		in.queue = nil
	}
}

// buffered counts the bytes that have arrived.
func (in *inbound) buffered(now time.Time) (n int) {
	for _, d := range in.queue {
		if !reached(d.at, now) {
			break
		}
		n += len(d.data)
	}
	return n
}

// reached reports whether the instant at, zero for never, has come.
func reached(at, now time.Time) bool {
	return !at.IsZero() && !at.After(now)
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// earliest is the earlier of two instants. Zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
