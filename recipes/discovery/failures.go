package discovery

import (
	"sync"
	"time"
)

// failures counts the failures of instances.
type failures struct {
	threshold int
	period    time.Duration

	mu  sync.Mutex
	all map[key]failing
}

// failing is what is known of an instance that has failed.
type failing struct {
	times int
	until time.Time // when the failures are forgotten
}

func newFailures(threshold int, period time.Duration) *failures {
	return &failures{threshold: threshold, period: period, all: map[key]failing{}}
}

// add adds a failure.
func (f *failures) add(k key) {
	if f.threshold == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetLocked()
	one, there := f.all[k]
	one.times++
	if !there || one.times == f.threshold {
		one.until = time.Now().Add(f.period)
	}
	f.all[k] = one
}

// forgetLocked forgets failures of long ago.
func (f *failures) forgetLocked() {
	now := time.Now()
	for k, one := range f.all {
		if !now.Before(one.until) {
			delete(f.all, k)
		}
	}
}

// now returns the instances that are left out now; nil if there are none.
func (f *failures) now() map[key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetLocked()
	var out map[key]bool
	for k, one := range f.all {
		if one.times >= f.threshold {
			if out == nil {
				out = map[key]bool{}
			}
			out[k] = true
		}
	}
	return out
}
