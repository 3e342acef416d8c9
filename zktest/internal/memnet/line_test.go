package memnet

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// readers keeps a number of Reads of one byte pending on one end.
type readers struct {
	c     *Conn
	bytes chan byte
	errs  chan error
}

func newReaders(c *Conn, n int) *readers {
	r := &readers{c, make(chan byte, n), make(chan error, n)}
	for range n {
		r.add()
	}
	return r
}

// add starts a Read, which blocks for as long as nothing is there for it.
func (r *readers) add() {
	go func() {
		var b [1]byte
		if _, err := r.c.Read(b[:]); err != nil {
			r.errs <- err
			return
		}
		r.bytes <- b[0]
	}()
	synctest.Wait()
}

// expectEnd checks that all Reads have ended, with an error that matches.
func (r *readers) expectEnd(t *testing.T, want error) {
	t.Helper()
	synctest.Wait()
	if len(r.errs) != cap(r.errs) {
		t.Errorf("%d reads have ended, want %d", len(r.errs), cap(r.errs))
	}
	for range len(r.errs) {
		if err := <-r.errs; !errors.Is(err, want) {
			t.Errorf("a read ended with %v, want %v", err, want)
		}
	}
}

func TestEachArrivalReachesOneReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server := pipe(nil, nil)
		line := newReaders(server, 20)
		for i := range byte(50) {
			send(t, client, string(rune(i)))
			synctest.Wait()
			if len(line.bytes) != 1 || <-line.bytes != i {
				t.Fatalf("byte %d did not reach exactly one reader", i)
			}
			line.add() // behind those that waited before
		}
		_ = client.Close()
		_ = server.SetReadDeadline(time.Now())
		line.expectEnd(t, os.ErrDeadlineExceeded)
	})
}

func TestOneArrivalForManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server := pipe(nil, nil)
		line := newReaders(server, 3)
		send(t, client, "abc")
		synctest.Wait()
		var got string
		for range len(line.bytes) {
			got += string(rune(<-line.bytes))
		}
		if got != "abc" {
			t.Errorf("the readers got %q", got)
		}
	})
}

func TestOwnEndEndsPendingReads(t *testing.T) {
	for name, leave := range map[string]func(*Conn){
		"close": func(c *Conn) { _ = c.Close() },
		"reset": (*Conn).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, _ := pipe(after(time.Hour), after(time.Hour))
				line := newReaders(client, 10)
				leave(client)
				line.expectEnd(t, net.ErrClosed)
			})
		})
	}
}
