package memnet

import "time"

// inbound is what was sent to one end and has not been read there. Parts of it may still be on
// their way.
type inbound struct {
	schedule Schedule
	last     time.Time // the latest arrival so far
	queue    []delivery
	fin, rst time.Time // arrival of the end of the stream and of a reset; zero if none was sent
}

// delivery is the data of one Write.
type delivery struct {
	at   time.Time
	data []byte
}

// arrival returns the time at which something that is sent now arrives.
func (in *inbound) arrival(now time.Time) time.Time {
	at := now
	if in.schedule != nil {
		at = in.schedule(now)
	}
	in.last = latest(at, now, in.last)
	return in.last
}

// next returns the time at which the next thing to read arrives, or zero if nothing was sent.
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

// drop removes the first delivery, and frees the queue after the last.
func (in *inbound) drop() {
	in.queue[0] = delivery{}
	in.queue = in.queue[1:]
	if len(in.queue) == 0 {
		in.queue = nil
	}
}

// buffered returns the number of bytes that have arrived.
func (in *inbound) buffered(now time.Time) (n int) {
	for _, d := range in.queue {
		if !reached(d.at, now) {
			break
		}
		n += len(d.data)
	}
	return n
}

// reached reports whether the instant at has come. Zero means never.
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

// earliest returns the earlier of two instants. Zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
