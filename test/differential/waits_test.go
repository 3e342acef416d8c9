package differential

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// These scenarios are about time, so they have to wait. They run concurrently.
func TestWaits(t *testing.T) {
	compare(t, group{concurrent: true, scenarios: []scenario{
		silentSessionsEndInTime,
		requestsKeepTheSession,
		authAloneAndTheSession,
		comingBackKeepsTheSession,
		disconnectingDoesNotRestartTheClock,
		attachSetsTheClock,
		expiryTakesAllEphemeralsAtOnce,
		expiredSessionIsForgotten,
		requestsOfAnExpiredSessionAreNotApplied,
		silentSocketsAreClosed,
	}})
}

// waitSlack is the time allowed for a busy machine.
const waitSlack = 5 * time.Second

// delay measures from now on how much time passes, all in all, while answers are due. The delay is what
// happens late for no other reason than that the machine is busy. It includes a pause that has begun.
func (s *script) delay() (sum func() time.Duration) {
	const pause = 500 * time.Millisecond
	c, begun := s.hidden(), time.Now()
	var answers atomic.Int64
	s.measuring.Go(func() {
		for c.ending == nil {
			select {
			case <-time.After(pause):
			case <-s.over:
				return
			}
			c.do(rawzk.Sync("/"))
			answers.Add(1)
		}
	})
	return func() time.Duration { return time.Since(begun) - time.Duration(answers.Load())*pause }
}

// lasted compares the end of a session with its timeout. The server last heard of the session
// between from and to. The end was seen with the given delay.
func lasted(timeout time.Duration, from, to, end time.Time, delay time.Duration) string {
	switch {
	case end.Sub(from) < timeout:
		return "too early"
	case end.Sub(to) > timeout+defaultTick+waitSlack+delay:
		return "too late"
	}
	return "in time"
}

func silentSessionsEndInTime(s *script) {
	timeouts := []time.Duration{1000, 1200, 1500, 1700, 2500, 3001}
	results := make([]string, len(timeouts))
	delay := s.delay()
	var all sync.WaitGroup
	for i, timeout := range timeouts {
		timeout *= time.Millisecond
		c := s.open(fmt.Sprint("c", i))
		from := time.Now()
		c.hello(newSession(timeout))
		to := time.Now()
		c.hidden = true
		all.Go(func() {
			c.end()
			results[i] = fmt.Sprintf("timeout %v: %s, %d events", timeout,
				lasted(timeout, from, to, time.Now(), delay()), c.events)
		})
	}
	all.Wait()
	for _, result := range results {
		s.logf("%s", result)
	}
}

const (
	keptTimeout = 2 * time.Second
	keptEvery   = 300 * time.Millisecond
	keptFor     = 15 // times

	endsAfter = 8 * time.Second // without a request: until then, a scenario has set its watches
)

// inTrials repeats a trial whose session has ended although a request was late once: that says nothing.
func inTrials(trial func() (lives, inTime bool)) (lives bool) {
	for {
		lives, inTime := trial()
		if lives || inTime {
			return lives
		}
	}
}

// staysOpen reports whether a session stays open that a client uses only for op, again and again.
func (s *script) staysOpen(name string, op func(c *client)) bool {
	return inTrials(func() (lives, inTime bool) {
		begun := time.Now()
		c := s.open(name)
		c.hidden = true
		c.hello(newSession(keptTimeout))
		inTime = repeat(begun, func() { op(c) })
		return c.ending == nil, inTime
	})
}

// repeat calls op so often that a session that began after begun stays open, if op counts for it. It
// reports whether the server got each op in time.
func repeat(begun time.Time, op func()) (inTime bool) {
	tick := time.NewTicker(keptEvery)
	defer tick.Stop()
	inTime = true
	for range keptFor {
		<-tick.C
		next := time.Now()
		op()
		inTime = inTime && time.Since(begun) < keptTimeout
		begun = next
	}
	return inTime
}

func requestsKeepTheSession(s *script) {
	ops := []rawzk.Op{
		rawzk.Ping(),
		rawzk.GetData(s.path(""), false),
		rawzk.Exists(s.path("none"), false),
		rawzk.Delete(s.path("none"), -1),
		rawzk.Sync("/"),
		rawzk.SetWatches(0, []string{}, []string{}, []string{}),
		{Code: rawzk.OpGetData, Text: "getData without a body"},
		rawzk.WhoAmI(),
	}
	lives := make([]bool, len(ops))
	var all sync.WaitGroup
	for i, op := range ops {
		all.Go(func() { lives[i] = s.staysOpen(fmt.Sprint("c", i), func(c *client) { c.do(op) }) })
	}
	all.Wait()
	for i, op := range ops {
		s.logf("%v: lives %t", op, lives[i])
	}
}

// authAloneAndTheSession uses auth, which is handled differently from other requests.
func authAloneAndTheSession(s *script) {
	s.logf("lives %t", s.staysOpen("c", func(c *client) { c.do(rawzk.Auth("digest", []byte("u:p"))) }))
}

func comingBackKeepsTheSession(s *script) {
	s.logf("lives %t", inTrials(func() (lives, inTime bool) {
		begun := time.Now()
		first := s.open("c")
		first.hidden = true
		first.hello(newSession(keptTimeout))
		last := first
		inTime = repeat(begun, func() {
			last.conn.Close()
			last = s.open("c")
			last.hidden = true
			last.hello(sameSession(first, keptTimeout))
		})
		return last.session == first.session, inTime
	}))
}

// awaitDeletion watches path with a client of its own and returns the time of the deletion.
func (s *script) awaitDeletion(path string) time.Time {
	w := s.connect("watcher")
	w.do(rawzk.Exists(path, true))
	w.awaitEvents(1)
	return time.Now()
}

func disconnectingDoesNotRestartTheClock(s *script) {
	delay, c := s.delay(), s.open("c")
	c.hello(newSession(endsAfter))
	from := time.Now()
	c.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	to := time.Now()
	time.AfterFunc(endsAfter-endsAfter/8, func() { c.conn.Close() })
	end := s.awaitDeletion(s.path("x"))
	s.logf("the session ended %s", lasted(endsAfter, from, to, end, delay()))
}

func attachSetsTheClock(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	delay, b := s.delay(), s.open("b")
	from := time.Now()
	b.hello(sameSession(a, endsAfter))
	to := time.Now()
	a.end()
	end := s.awaitDeletion(s.path("x"))
	s.logf("the session ended %s", lasted(endsAfter, from, to, end, delay()))
	b.end()
}

func expiryTakesAllEphemeralsAtOnce(s *script) {
	a, b := s.open("a"), s.connect("b")
	a.hello(newSession(endsAfter))
	for _, dir := range []string{"one", "two"} {
		b.do(rawzk.Create(s.path(dir), nil, rawzk.Open(), rawzk.Persistent))
		for i := range 3 {
			a.do(rawzk.Create(s.path(fmt.Sprint(dir, "/e", i)), nil, rawzk.Open(), rawzk.Ephemeral))
		}
		b.do(rawzk.GetChildren(s.path(dir), true))
	}
	b.do(rawzk.AddWatch(s.path(""), 1))
	line := len(s.lines)
	b.awaitEvents(8)
	b.barrier()
	s.sortFrom(line)
	one := rawzk.Decode(b.do(rawzk.Exists(s.path("one"), false)).body).Stat()
	two := rawzk.Decode(b.do(rawzk.Exists(s.path("two"), false)).body).Stat()
	s.logf("in one transaction: %t", one.Pzxid == two.Pzxid)
	a.end()
}

// expiredSessionIsForgotten comes back when the servers have closed the session: the real server closes a
// connection that comes back in that moment without an answer.
func expiredSessionIsForgotten(s *script) {
	a := s.open("a")
	a.hello(newSession(endsAfter))
	a.do(rawzk.GetData(s.path(""), true))
	a.do(rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Ephemeral))
	s.awaitDeletion(s.path("e"))
	a.end()
	s.connect("w").do(rawzk.Create(s.path("after"), nil, rawzk.Open(), rawzk.Persistent))
	b := s.attach("b", a)
	b.end()
}

func requestsOfAnExpiredSessionAreNotApplied(s *script) {
	a := s.open("a")
	a.hello(newSession(endsAfter))
	a.do(rawzk.Create(s.path("e"), nil, rawzk.Open(), rawzk.Ephemeral))
	s.awaitDeletion(s.path("e"))
	a.pipeline(
		rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Persistent),
		rawzk.SetData(s.path(""), nil, -1),
		rawzk.CloseSession())
	a.end()
	b := s.connect("b")
	b.do(rawzk.Exists(s.path("x"), false))
	b.do(rawzk.GetData(s.path(""), false))
}

func TestTimeWithoutASession(t *testing.T) {
	compare(t, group{
		concurrent: true,
		config:     config{properties: map[string]string{"zookeeper.nio.sessionlessCnxnTimeout": "2000"}},
		scenarios:  []scenario{silentSocketsAreClosedSooner},
	})
}

// silentSocketsAreClosed uses sockets that never had a session.
func silentSocketsAreClosed(s *script) { s.silentSocketsEnd(9*time.Second, 20*time.Second+waitSlack) }

func silentSocketsAreClosedSooner(s *script) {
	s.silentSocketsEnd(1900*time.Millisecond, 4*time.Second+waitSlack)
}

// silentSocketsEnd expects an end after least and before most.
func (s *script) silentSocketsEnd(least, most time.Duration) {
	sent := [][]byte{nil, {0, 0}, {0, 0, 0, 44}, {0, 0, 0, 44, 0, 0, 0, 0, 1, 2, 3}}
	results := make([]string, len(sent))
	delay := s.delay()
	var all sync.WaitGroup
	for i, b := range sent {
		c := s.open(fmt.Sprint("c", i))
		c.hidden = true
		opened := time.Now()
		c.sendBytes(b)
		all.Go(func() {
			c.end()
			after := time.Since(opened)
			results[i] = fmt.Sprintf("%x: closed in time %t", b, after > least && after < most+delay())
		})
	}
	all.Wait()
	for _, result := range results {
		s.logf("%s", result)
	}
}
