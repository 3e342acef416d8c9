package memnet

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestConnectionsAreCheap(t *testing.T) {
	const pairs, limit = 10_000, 1 << 10 // bytes for both ends of one
	conns := make([]*Conn, 0, 2*pairs)
	before := heap()
	for range pairs {
		client, server := Pipe(address(1), address(2), nil, nil)
		conns = append(conns, client, server)
		exchange(t, client, server, 50, 100)
	}
	if each := (heap() - before) / pairs; each > limit {
		t.Errorf("a connection with nothing on its way holds %d bytes, want %d at most", each, limit)
	}
	runtime.KeepAlive(conns)
}

func TestWhatWasReadIsReleased(t *testing.T) {
	const size = 10 << 20
	client, server := Pipe(address(1), address(2), nil, nil)
	before := heap()
	send(t, client, string(make([]byte, size)), "more")
	if _, err := io.ReadFull(server, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if held := heap() - before; held > size/2 {
		t.Errorf("%d bytes are held, with %d unread", held, server.Buffered())
	}
	runtime.KeepAlive(client)
}

func TestAClosedEndKeepsNothing(t *testing.T) {
	for name, leave := range map[string]func(*Conn){
		"close": func(c *Conn) { _ = c.Close() },
		"reset": (*Conn).Reset,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, server := pipe(after(5*ms), after(5*ms))
				send(t, client, "on its way")
				leave(server)
				send(t, client, "sent to nobody")
				time.Sleep(time.Second)
				if n := server.Buffered(); n != 0 {
					t.Errorf("it holds %d bytes", n)
				}
			})
		})
	}
}

// exchange sends some parts, then reads them.
func exchange(t *testing.T, from, to *Conn, parts, size int) {
	t.Helper()
	buf := make([]byte, size)
	for range parts {
		if _, err := from.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	for range parts {
		if _, err := io.ReadFull(to, buf); err != nil {
			t.Fatal(err)
		}
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
