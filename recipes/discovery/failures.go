package discovery

import (
	"slices"
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
	times []time.Time // the failures of the last period; fewer than the threshold
	until time.Time   // when the instance is not left out any more; zero: it is not left out
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
	now := time.Now()
	f.forgetLocked(now)
	one := f.all[k]
	if !one.until.IsZero() {
		return
	}
	one.times = append(one.times, now)
	if len(one.times) == f.threshold {
		one = failing{until: now.Add(f.period)}
	}
	f.all[k] = one
}

// forgetLocked forgets failures of long ago.
func (f *failures) forgetLocked(now time.Time) {
	for k, one := range f.all {
		one.times = slices.DeleteFunc(one.times, func(t time.Time) bool { return now.Sub(t) >= f.period })
		if len(one.times) == 0 && !now.Before(one.until) {
			delete(f.all, k)
			continue
		}
		f.all[k] = one
	}
}

// now returns the instances that are left out now; nil if there are none.
func (f *failures) now() map[key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetLocked(time.Now())
	var out map[key]bool
	for k, one := range f.all {
		if !one.until.IsZero() {
			if out == nil {
				out = map[key]bool{}
			}
			out[k] = true
		}
	}
	return out
}
