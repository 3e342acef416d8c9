package conn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// follower answers requests in their order. It applies what the leader has done in batches, each half of
// the longest delay after the one before. Some requests it answers sooner.
type follower struct {
	rnd     *rand.Rand
	longest time.Duration // delay
	last    time.Duration // when the last request is answered
}

// answers returns when a request that is sent now is answered.
func (f *follower) answers(now time.Duration) time.Duration {
	batch := f.longest / 2
	at := (now + 2*batch) / batch * batch
	if f.rnd.IntN(4) == 0 {
		at = now + time.Duration(f.rnd.Int64N(int64(f.longest)))
	}
	f.last = max(f.last, at)
	return f.last
}

// underLateReplies returns the largest age of countsFrom in 30 timeouts, and how many heartbeats are sent
// in an interval. Some goroutines make another request a while after each reply.
func underLateReplies(timeout time.Duration, f *follower, goroutines int) (oldest time.Duration, beats float64) {
	type request struct{ sent, answered time.Duration }
	c, interval := &contact{}, timeout/heartbeatsPerTimeout
	c.setTimeouts(timeout, timeout)
	c.restart(at(0))
	var pending []request
	send := func(now time.Duration) (answered time.Duration) {
		answered = f.answers(now)
		pending = append(pending, request{now, answered})
		return answered
	}
	next, last, sent := make([]time.Duration, goroutines), time.Duration(0), 0
	for now := time.Duration(0); now < 30*timeout; now += timeout / 1000 {
		for len(pending) > 0 && pending[0].answered <= now {
			c.add(at(pending[0].sent), at(now))
			pending = pending[1:]
		}
		for i := range next {
			if now >= next[i] {
				next[i] = send(now) + time.Duration(f.rnd.Int64N(int64(timeout/4)))
			}
		}
		if now-last >= c.untilNext() {
			send(now)
			last, sent = now, sent+1
		}
		oldest = max(oldest, at(now).Since(c.countsFrom))
	}
	return oldest, float64(sent) * float64(interval) / float64(30*timeout)
}

// A follower that lags makes all replies late, but not by the same time. Until the delays are more than a
// fifth of the timeout, the session lives, which ends two thirds of the timeout after countsFrom.
func TestSessionOutlivesLateReplies(t *testing.T) {
	const timeout = 30 * time.Second
	for _, row := range []struct {
		delay float64 // in timeouts, the longest
		beats float64 // at most
	}{{0.02, 1.01}, {0.05, 1.05}, {0.1, 2}, {0.15, 2.5}, {0.2, 4}, {0.22, 4}} {
		for _, goroutines := range []int{0, 1, 3} {
			for seed := range uint64(40) {
				name := fmt.Sprintf("delays up to %v, %d goroutines, seed %d", row.delay, goroutines, seed)
				longest := time.Duration(row.delay * float64(timeout))
				f := &follower{rnd: rand.New(rand.NewPCG(seed, 1)), longest: longest}
				oldest, beats := underLateReplies(timeout, f, goroutines)
				require.Less(t, oldest, timeout*2/3, name)
				require.LessOrEqual(t, beats, row.beats, name)
			}
		}
	}
}
