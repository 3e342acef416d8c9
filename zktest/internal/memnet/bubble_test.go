package memnet

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// after returns a Schedule of latencies, one for each call. The last one applies to all further
// calls.
func after(latencies ...time.Duration) Schedule {
	return func(now time.Time) time.Time {
		d := latencies[0]
		if len(latencies) > 1 {
			latencies = latencies[1:]
		}
		return now.Add(d)
	}
}

// event is the result of a Read with its time.
type event struct {
	at   time.Duration
	data string
	err  error
}

// readAt records one Read.
func readAt(start time.Time, c *Conn) event {
	p := make([]byte, 100)
	n, err := c.Read(p)
	return event{time.Since(start), string(p[:n]), err}
}

// expectReads reads from c and compares the results with the list.
func expectReads(t *testing.T, start time.Time, c *Conn, want ...event) {
	t.Helper()
	for _, w := range want {
		got := readAt(start, c)
		if got.at != w.at || got.data != w.data || !errors.Is(got.err, w.err) {
			t.Errorf("read %+v, want %+v", got, w)
		}
	}
}

func pipe(toServer, toClient Schedule) (start time.Time, client, server *Conn) {
	client, server = Pipe(address(1), address(2), toServer, toClient)
	return time.Now(), client, server
}

func send(t *testing.T, c *Conn, data ...string) {
	t.Helper()
	for _, d := range data {
		if n, err := c.Write([]byte(d)); n != len(d) || err != nil {
			t.Errorf("write %q: %d, %v", d, n, err)
		}
	}
}

func TestDataArrivesWhenScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms, 7*ms, 0, 2*ms, 1*ms), nil)
		send(t, client, "a", "b", "c", "d") // b delays the two behind it
		expectReads(t, start, server, event{at: 5 * ms, data: "a"}, event{at: 7 * ms, data: "bcd"})
		send(t, client, "e")
		expectReads(t, start, server, event{at: 8 * ms, data: "e"})
	})
}

func TestDataArrivesDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms, 1*ms), nil)
		time.AfterFunc(10*ms, func() { send(t, client, "a", "b") })
		expectReads(t, start, server, event{at: 15 * ms, data: "ab"})
	})
}

func TestNothingArrivesBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(-time.Hour), func(time.Time) time.Time { return time.Time{} })
		time.Sleep(3 * ms)
		send(t, client, "a")
		send(t, server, "b")
		_ = server.CloseWrite()
		expectReads(t, start, server, event{at: 3 * ms, data: "a"})
		expectReads(t, start, client, event{at: 3 * ms, data: "b"}, event{at: 3 * ms, err: io.EOF})
	})
}

func TestBufferedCountsWhatHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server := pipe(after(1*ms, 2*ms), nil)
		send(t, client, "abc", "de")
		var got []int
		for range 3 {
			got = append(got, server.Buffered())
			time.Sleep(ms)
		}
		if want := []int{0, 3, 5}; !slices.Equal(got, want) {
			t.Errorf("buffered: %v, want %v", got, want)
		}
	})
}

func TestEndAndResetArriveWhenScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms, 1*ms), after(3*ms, 9*ms))
		send(t, client, "a")
		_ = client.CloseWrite()
		send(t, server, "b")
		server.Reset()
		expectReads(t, start, client, event{at: 3 * ms, data: "b"}, event{9 * ms, "", syscall.ECONNRESET})

		start, client, server = pipe(after(5*ms, 8*ms), nil)
		send(t, client, "a")
		_ = client.CloseWrite()
		expectReads(t, start, server, event{at: 5 * ms, data: "a"}, event{at: 8 * ms, err: io.EOF})
	})
}

func TestEndArrivesDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), after(7*ms))
		time.AfterFunc(1*ms, func() { _ = client.CloseWrite() })
		time.AfterFunc(1*ms, server.Reset)
		expectReads(t, start, client, event{8 * ms, "", syscall.ECONNRESET})

		start, client, server = pipe(after(5*ms), nil)
		time.AfterFunc(1*ms, func() { _ = client.Close() })
		expectReads(t, start, server, event{at: 6 * ms, err: io.EOF})
	})
}

// An end that writes to a closed end learns of it after one round trip.
func TestAnswerOfAClosedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), after(1*ms, 7*ms))
		_ = server.Close()
		expectReads(t, start, client, event{at: 1 * ms, err: io.EOF})
		for range 12 { // from 1 ms until just before the answer
			send(t, client, "x")
			time.Sleep(ms)
		}
		expectWriteError(t, client, syscall.EPIPE)
		expectReads(t, start, client, event{at: 13 * ms, err: io.EOF})
	})
}

// Data that has not arrived when an end is closed is not unread, but it is answered when it
// arrives.
func TestCloseWithDataOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), after(2*ms))
		send(t, client, "x")
		_ = server.Close()
		expectReads(t, start, client, event{at: 2 * ms, err: io.EOF})
		time.Sleep(5*ms - time.Nanosecond)
		send(t, client, "y")
		time.Sleep(time.Nanosecond)
		expectWriteError(t, client, syscall.EPIPE)
	})
}

func TestCloseWithDataUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, client, server := pipe(after(5*ms), after(2*ms))
		send(t, client, "x")
		time.Sleep(5 * ms)
		_ = server.Close()
		expectReads(t, start, client, event{7 * ms, "", syscall.ECONNRESET}, event{at: 7 * ms, err: io.EOF})
	})
}

func expectWriteError(t *testing.T, c *Conn, want error) {
	t.Helper()
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, want) {
		t.Errorf("write: %d, %v, want %v", n, err, want)
	}
}

func TestScheduleIsAskedOnceForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		start := time.Now()
		count := func(now time.Time) time.Time {
			asked = append(asked, now.Sub(start))
			return now.Add(4 * ms)
		}
		_, client, server := pipe(count, after(time.Hour))
		for range 3 {
			send(t, client, "x", "")
			time.Sleep(ms)
		}
		_ = client.CloseWrite()
		_ = client.CloseWrite()
		time.Sleep(ms)
		send(t, server, "y") // on its way when the client closes, which answers it in an hour
		_ = client.Close()
		if want := []time.Duration{0, 1 * ms, 2 * ms, 3 * ms, 4*ms + time.Hour}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v, want %v", asked, want)
		}
	})
}

func TestResetOvertakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server := pipe(nil, after(9*ms, 3*ms))
		send(t, server, "late")
		server.Reset()
		time.Sleep(9*ms - time.Nanosecond)
		send(t, client, "x")
		time.Sleep(time.Nanosecond)
		expectWriteError(t, client, syscall.ECONNRESET)
	})
}

func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, _ := pipe(nil, nil)
		_ = client.SetDeadline(time.Now())
		_, err := client.Read(make([]byte, 1))
		var op *net.OpError
		if !errors.As(err, &op) || op.Source != client.LocalAddr() || op.Addr != client.RemoteAddr() || !op.Timeout() {
			t.Errorf("got %v", err)
		}
	})
}
