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

// add starts a Read, which blocks until there is data for it.
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

// expectEnd checks that all Reads have ended with an error that matches.
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
		all := newReaders(server, 20)
		for i := range byte(50) {
			send(t, client, string(rune(i)))
			synctest.Wait()
			if len(all.bytes) != 1 || <-all.bytes != i {
				t.Fatalf("byte %d did not reach exactly one reader", i)
			}
			all.add() // behind those that waited before
		}
		_ = client.Close()
		_ = server.SetReadDeadline(time.Now())
		all.expectEnd(t, os.ErrDeadlineExceeded)
	})
}

func TestOneArrivalForManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, server := pipe(nil, nil)
		all := newReaders(server, 3)
		send(t, client, "abc")
		synctest.Wait()
		var got string
		for range len(all.bytes) {
			got += string(rune(<-all.bytes))
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
				all := newReaders(client, 10)
				leave(client)
				all.expectEnd(t, net.ErrClosed)
			})
		})
	}
}
