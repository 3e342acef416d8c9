package memnet

import (
	"io"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

var timeout = os.ErrDeadlineExceeded

func TestDeadlineAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), nil)
		_ = server.SetReadDeadline(start.Add(4 * ms))
		send(t, client, "a")
		expectReads(t, start, server, event{4 * ms, "", timeout}, event{4 * ms, "", timeout})
		_ = server.SetReadDeadline(time.Time{})
		expectReads(t, start, server, event{at: 5 * ms, data: "a"})
	})
}

func TestDeadlineWinsATie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), nil)
		_ = server.SetReadDeadline(start.Add(5 * ms))
		send(t, client, "a")
		expectReads(t, start, server, event{5 * ms, "", timeout})
		_ = server.SetReadDeadline(start.Add(5*ms + 1))
		expectReads(t, start, server, event{at: 5 * ms, data: "a"}, event{5*ms + 1, "", timeout})
	})
}

func TestDeadlineMovedDuringARead(t *testing.T) {
	at := func(d time.Duration) func(time.Time) time.Time {
		return func(start time.Time) time.Time { return start.Add(d) }
	}
	never := func(time.Time) time.Time { return time.Time{} }
	for name, c := range map[string]struct {
		first, then func(start time.Time) time.Time
		want        event
	}{
		"sooner":        {at(8 * ms), at(5 * ms), event{5 * ms, "", timeout}},
		"later":         {at(5 * ms), at(8 * ms), event{8 * ms, "", timeout}},
		"into the past": {at(8 * ms), at(-time.Hour), event{2 * ms, "", timeout}},
		"to now":        {at(8 * ms), at(2 * ms), event{2 * ms, "", timeout}},
		"set":           {never, at(5 * ms), event{5 * ms, "", timeout}},
		"cleared":       {at(5 * ms), never, event{10 * ms, "a", nil}},
		"set too late":  {never, at(11 * ms), event{10 * ms, "a", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, client, server := pipe(after(10*ms), nil)
				send(t, client, "a")
				_ = server.SetDeadline(c.first(start))
				time.AfterFunc(2*ms, func() { _ = server.SetReadDeadline(c.then(start)) })
				expectReads(t, start, server, c.want)
				if got := server.writeBy; !got.Equal(c.first(start)) {
					t.Errorf("the write deadline went to %v", got)
				}
			})
		})
	}
}

func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(nil, nil)
		_ = client.SetWriteDeadline(start.Add(3 * ms))
		time.Sleep(3*ms - time.Nanosecond)
		send(t, client, "a")
		time.Sleep(time.Nanosecond)
		expectWriteError(t, client, timeout)
		expectWriteError(t, client, timeout)
		_ = client.SetWriteDeadline(time.Time{})
		send(t, client, "b")
		expectReads(t, start, server, event{at: 3 * ms, data: "ab"})
	})
}

// This test would hang at Wait and at Sleep if a Read blocked on anything outside of the bubble.
func TestIdleReaderLetsTheClockGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(nil, nil)
		ended := make(chan event, 2) // two readers, one of which waits for its turn
		for range cap(ended) {
			go func() { ended <- readAt(start, server) }()
		}
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		if len(ended) != 0 {
			t.Errorf("a read ended: %+v", <-ended)
		}
		_ = client.Close()
		for range cap(ended) {
			if got := <-ended; got != (event{24 * time.Hour, "", io.EOF}) {
				t.Errorf("read %+v", got)
			}
		}
	})
}

// A goroutine that is left in a bubble fails the test.
func TestStartsNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		start, client, server := pipe(after(5*ms), after(5*ms))
		_ = server.SetDeadline(start.Add(time.Hour))
		send(t, client, "a")
		_ = client.Close()
		send(t, server, "b")
		expectReads(t, start, server, event{at: 5 * ms, data: "a"}, event{at: 5 * ms, err: io.EOF})
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
	})
}

// This test would panic if a wait left anything that belongs to the bubble.
func TestConnectionOutlivesABubble(t *testing.T) {
	client, server := Pipe(address(1), address(2), nil, nil)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_ = server.SetDeadline(start.Add(ms))
		expectReads(t, start, server, event{ms, "", timeout})
	})
	_ = server.SetDeadline(time.Time{})
	send(t, client, "a")
	if got := readAt(time.Now(), server); got.data != "a" || got.err != nil {
		t.Errorf("read %+v", got)
	}
}
