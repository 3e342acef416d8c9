package simulation_test

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// resource is a number that holders of a mutex add to. A register refuses the requests of holders that
// are late.
type resource struct {
	register fence.Register

	mu      sync.Mutex
	number  int
	largest int64 // token of the requests that were accepted
	running int
}

// request makes a request with the token of a hold, and reports whether the register has accepted it.
// use returns the next number.
func (r *resource) request(w *worker, hold *record, use func(number int) int) (accepted bool) {
	err := r.register.Do(hold.token, func() error {
		r.begin(w, hold.token)
		runtime.Gosched() // lets other requests overlap if the register does not order them
		r.end(use)
		return nil
	})
	if err == nil {
		return true
	}
	if last := r.register.Last(); !errors.Is(err, fence.ErrStale) || last <= hold.token {
		w.errorf("%s: a request with token %d is refused after %d: %v", w.id, hold.token, last, err)
	}
	if w.checker.isValid(hold) {
		w.errorf("%s: a request of a valid hold is refused: %v", w.id, err)
	}
	return false
}

func (r *resource) begin(w *worker, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running++; r.running > 1 {
		w.errorf("%s: %d requests overlap", w.id, r.running)
	}
	if token < r.largest {
		w.errorf("%s: a request with token %d is accepted after %d", w.id, token, r.largest)
	}
	r.largest = max(r.largest, token)
}

func (r *resource) end(use func(number int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number = use(r.number)
	r.running--
}

// useResource reads the number of the resource under a mutex and adds to it later. It does not look at
// the hold in between, like a process that is paused.
func (w *worker) useResource(l *locks) error {
	h, err := w.acquire(l.fenced)
	if err != nil {
		return err
	}
	hold, r := w.begin(h, exclusive, fencedPath, nil), &w.resource
	for accepted := true; accepted && w.random.IntN(3) > 0; {
		var seen int
		accepted = r.request(w, hold, func(number int) int {
			seen = number
			return number
		})
		w.pause()
		accepted = accepted && r.addTo(w, hold, seen)
	}
	w.release(h)
	return nil
}

// pause waits for a time, sometimes for longer than a session that is cut off lasts.
func (w *worker) pause() {
	most := 500 * time.Millisecond
	if w.random.IntN(4) == 0 {
		most = 3 * sessionTimeout
	}
	time.Sleep(upTo(w.random, most))
}

// addTo adds 1 to the number that the same hold has seen. Another request comes at the same time.
func (r *resource) addTo(w *worker, hold *record, seen int) (accepted bool) {
	var other sync.WaitGroup
	other.Go(func() { r.request(w, hold, func(number int) int { return number }) })
	accepted = r.request(w, hold, func(number int) int {
		if number != seen {
			w.errorf("%s: an update is lost: the number is %d, and token %d has read %d",
				w.id, number, hold.token, seen)
		}
		return number + 1
	})
	other.Wait()
	return accepted
}
