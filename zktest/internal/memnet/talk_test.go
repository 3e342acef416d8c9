package memnet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// duplex has the methods that connections in memory and over TCP share in these tests. The last
// three methods return when the condition holds.
type duplex interface {
	net.Conn
	CloseWrite() error
	Reset()
	arrived(n int) // this number of bytes can be read
	ended()        // the end of the peer's stream has arrived
	gone()         // the connection has ended: a reset has arrived, or both streams have ended
}

// memEnd only checks the conditions: without a Schedule everything arrives at once.
type memEnd struct {
	*Conn
	t *testing.T
}

func (e memEnd) arrived(n int) {
	if got := e.Buffered(); got < n {
		e.t.Errorf("%d bytes have arrived, want %d", got, n)
	}
}

func (e memEnd) ended() {
	e.check("ended", !e.in.fin.IsZero() || !e.in.rst.IsZero())
}

func (e memEnd) gone() {
	e.check("gone", !e.in.rst.IsZero() || e.finished && !e.in.fin.IsZero())
}

func (e memEnd) check(what string, ok bool) {
	e.t.Helper()
	if !ok {
		e.t.Errorf("the connection is not %s", what)
	}
}

// talk is a connection with a record of all calls and their results.
type talk struct {
	t              *testing.T
	client, server *speaker
	lines          []string
}

type speaker struct {
	duplex
	name string
	talk *talk
}

func newTalk(t *testing.T, client, server duplex) *talk {
	k := &talk{t: t}
	k.client = &speaker{client, "client", k}
	k.server = &speaker{server, "server", k}
	// A call that hangs must fail the test, not block it.
	guard := time.AfterFunc(20*time.Second, func() { _, _ = client.Close(), server.Close() })
	t.Cleanup(func() { guard.Stop(); _, _ = client.Close(), server.Close() })
	return k
}

func (s *speaker) note(format string, args ...any) {
	s.talk.lines = append(s.talk.lines, s.name+": "+fmt.Sprintf(format, args...))
}

func (s *speaker) write(data string) {
	n, err := s.Write([]byte(data))
	s.note("write %q: %d, %s", data, n, describe(err))
}

func (s *speaker) read(size int) { s.readLater(size)() }

// readLater reads in another goroutine. The returned function waits for the result.
func (s *speaker) readLater(size int) func() {
	done := make(chan string)
	go func() {
		p := make([]byte, size)
		n, err := s.Read(p)
		done <- fmt.Sprintf("read %d: %q, %s", size, p[:n], describe(err))
	}()
	return func() { s.note("%s", <-done) }
}

func (s *speaker) close()      { s.note("close: %s", describe(s.Close())) }
func (s *speaker) closeWrite() { s.note("close write: %s", describe(s.CloseWrite())) }

func (s *speaker) deadline(t time.Time) {
	s.note("deadlines: %s, %s, %s", describe(s.SetDeadline(t)), describe(s.SetReadDeadline(t)),
		describe(s.SetWriteDeadline(t)))
}

// writeDeadlinePassed waits until the deadline of writes has passed. Go has a timer for each direction,
// and that of reads may fire earlier.
func (s *speaker) writeDeadlinePassed() {
	for {
		if _, err := s.Write(nil); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// describe returns everything that a caller can see of an error.
func describe(err error) string {
	if err == nil {
		return "ok"
	}
	text := fmt.Sprintf("%v (%T", err, err)
	var op *net.OpError
	if errors.As(err, &op) {
		text += fmt.Sprintf(" %s %s %v %v %T", op.Op, op.Net, op.Source, op.Addr, op.Err)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		text += " timeout"
	}
	targets := []error{
		io.EOF, os.ErrDeadlineExceeded, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOTCONN,
	}
	for _, target := range targets {
		if errors.Is(err, target) {
			text += fmt.Sprintf(" is %q", target)
		}
	}
	return text + ")"
}

// address returns an address for tests that do not use it.
func address(port int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
}
