package memnet

import (
	"encoding/binary"
	"net"
	"syscall"
	"testing"
	"time"
)

// tcpEnd is one end of a connection over the system's TCP.
type tcpEnd struct {
	*net.TCPConn
	t *testing.T
}

// dialTCP makes a connection over loopback.
func dialTCP(t *testing.T) (client, server tcpEnd) {
	t.Helper()
	l, err := net.ListenTCP("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	return tcpEnd{c, t}, tcpEnd{s, t}
}

// bothKinds makes a connection over loopback and one in memory with the same addresses.
func bothKinds(t *testing.T) map[string]*talk {
	t.Helper()
	tc, ts := dialTCP(t)
	mc, ms := Pipe(tc.LocalAddr().(*net.TCPAddr), tc.RemoteAddr().(*net.TCPAddr), nil, nil)
	return map[string]*talk{
		"tcp":    newTalk(t, tc, ts),
		"memory": newTalk(t, memEnd{mc, t}, memEnd{ms, t}),
	}
}

func (e tcpEnd) Reset() {
	if err := e.SetLinger(0); err != nil {
		e.t.Error(err)
	}
	if err := e.Close(); err != nil {
		e.t.Error(err)
	}
}

func (e tcpEnd) arrived(n int) {
	e.await("its data", func(fd int) bool {
		got, _, err := syscall.Recvfrom(fd, make([]byte, n), syscall.MSG_PEEK)
		return err == nil && got == n
	})
}

// States of a connection, from the kernel's tcp_states.h.
const (
	stateClose     = 7
	stateCloseWait = 8
	stateLastAck   = 9
	stateClosing   = 11
)

func (e tcpEnd) ended() {
	e.awaitState("the end", stateClose, stateCloseWait, stateLastAck, stateClosing)
}
func (e tcpEnd) gone() { e.awaitState("its end", stateClose) }

func (e tcpEnd) awaitState(what string, states ...byte) {
	e.await(what, func(fd int) bool {
		info, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err != nil {
			e.t.Error(err)
			return true
		}
		state := binary.NativeEndian.AppendUint32(nil, uint32(info))[0] // the first field of the kernel's answer
		for _, s := range states {
			if s == state {
				return true
			}
		}
		return false
	})
}

// await polls, because the system has no wait that leaves the connection unchanged.
func (e tcpEnd) await(what string, holds func(fd int) bool) {
	raw, err := e.SyscallConn()
	if err != nil {
		e.t.Error(err)
		return
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ok := false
		if err := raw.Control(func(fd uintptr) { ok = holds(int(fd)) }); err != nil {
			e.t.Error(err)
			return
		}
		if ok {
			return
		}
	}
	e.t.Errorf("%v did not reach %s", e.LocalAddr(), what)
}
