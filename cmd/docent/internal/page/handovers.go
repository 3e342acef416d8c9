package page

import "time"

const (
	slotTime = 5 * time.Second
	slots    = int64(time.Minute / slotTime)
	// maxCounted is for how many directories deletions are counted.
	maxCounted = 100_000
)

// handovers counts the nodes that were deleted in the last minute, by their directories. A lock node
// is deleted when its holder releases the lock or loses its session, and when a waiter gives up.
type handovers struct {
	since time.Time
	dirs  map[string]*window
}

// window is numbers of events in slots of time.
type window struct {
	n    [slots]int
	last int64 // the slot of the last event
}

func newHandovers(now time.Time) handovers {
	return handovers{since: now, dirs: map[string]*window{}}
}

func slotOf(now time.Time) int64 { return now.UnixNano() / int64(slotTime) }

func (h *handovers) add(dir string, now time.Time) {
	w := h.dirs[dir]
	if w == nil {
		if len(h.dirs) >= maxCounted || h.dirs == nil {
			return
		}
		w = &window{last: slotOf(now)}
		h.dirs[dir] = w
	}
	w.advance(slotOf(now))
	w.n[w.last%slots]++
}

// advance makes slot the last one.
func (w *window) advance(slot int64) {
	if slot-w.last >= slots {
		w.n, w.last = [slots]int{}, slot
	}
	for w.last < slot {
		w.last++
		w.n[w.last%slots] = 0
	}
}

// busy reports whether there was a deletion in the last minute, as of the last call of sums.
func (h *handovers) busy() bool { return len(h.dirs) > 0 }

// sums returns the numbers of the last minute, and forgets the directories that have none.
func (h *handovers) sums(now time.Time) map[string]int {
	sums := make(map[string]int, len(h.dirs))
	for dir, w := range h.dirs {
		w.advance(slotOf(now))
		for _, n := range w.n {
			sums[dir] += n
		}
		if sums[dir] == 0 {
			delete(h.dirs, dir)
			delete(sums, dir)
		}
	}
	return sums
}
