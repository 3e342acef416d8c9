package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// client creates and deletes one node. It uses as little CPU as possible: its requests are encoded
// before the start, and only the headers of the answers are decoded.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	batches [][]byte // all of the same number of requests, sent in turn
	size    int      // of a batch, in requests
	first   int      // batches to send before the first answer
	sent    int      // number of batches
	read    int      // number of answers
	done    *atomic.Int64
}

const (
	script    = 64 // requests, half of them creates
	inBuffer  = 32 << 10
	replySize = 16 // of the header
	closing   = script + 1
	talkLimit = time.Minute // longer than any answer takes
)

// drive uses a server for a while and returns the operations per second.
func drive(ctx context.Context, addr string, l load, long time.Duration) (float64, error) {
	var done atomic.Int64
	var all []*client
	defer func() {
		for _, c := range all {
			_ = c.conn.Close()
		}
	}()
	for i := range l.clients {
		c, err := dial(addr, fmt.Sprintf("/bench-%d", i), l.window, &done)
		if err != nil {
			return 0, err
		}
		all = append(all, c)
	}
	return together(ctx, all, &done, long)
}

// together lets all clients work at once. The measurement begins when all of them have started.
func together(ctx context.Context, all []*client, done *atomic.Int64, long time.Duration) (float64, error) {
	var running sync.WaitGroup
	var stop atomic.Bool
	errs := make([]error, len(all))
	for i, c := range all {
		running.Go(func() { errs[i] = c.work(&stop) })
	}
	rest(ctx, long/10)
	before, began := done.Load(), time.Now()
	rest(ctx, long)
	ops, took := done.Load()-before, time.Since(began)
	stop.Store(true)
	running.Wait()
	return float64(ops) / took.Seconds(), errors.Join(append(errs, ctx.Err())...)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// dial opens a session. A window of requests is sent in two halves, so that one is on its way while
// the other is answered.
func dial(addr, path string, window int, done *atomic.Int64) (*client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	half := max(window/2, 1)
	c := &client{
		conn: conn, in: bufio.NewReaderSize(conn, inBuffer), batches: batches(path, half), size: half,
		first: window / half, done: done,
	}
	if err := c.connect(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) connect() error {
	if err := c.conn.SetDeadline(time.Now().Add(talkLimit)); err != nil {
		return err
	}
	hello := rawzk.Connect{Timeout: 30_000, Password: make([]byte, 16)}
	if _, err := c.conn.Write(rawzk.Frame(hello.Encode())); err != nil {
		return err
	}
	var prefix [4]byte
	if _, err := io.ReadFull(c.in, prefix[:]); err != nil {
		return err
	}
	_, err := c.in.Discard(int(binary.BigEndian.Uint32(prefix[:])))
	return err
}

// batches returns the frames of all requests, size in each. Their numbers begin at 1.
func batches(path string, size int) [][]byte {
	all := make([][]byte, script/size)
	for i := range script {
		o := rawzk.Create(path, nil, rawzk.Open(), rawzk.Persistent)
		if i%2 == 1 {
			o = rawzk.Delete(path, -1)
		}
		all[i/size] = append(all[i/size], rawzk.Frame(rawzk.Request(int32(i+1), o))...)
	}
	return all
}

// work sends requests until stop, and ends the session.
func (c *client) work(stop *atomic.Bool) error {
	for range c.first - 1 {
		if err := c.send(); err != nil {
			return err
		}
	}
	for !stop.Load() || c.sent%len(c.batches) != 0 { // continues until the node is deleted
		if err := c.send(); err != nil {
			return err
		}
		if err := c.receive(); err != nil {
			return err
		}
	}
	for range c.first - 1 {
		if err := c.receive(); err != nil {
			return err
		}
	}
	return c.leave()
}

func (c *client) send() error {
	if err := c.conn.SetDeadline(time.Now().Add(talkLimit)); err != nil {
		return err
	}
	_, err := c.conn.Write(c.batches[c.sent%len(c.batches)])
	c.sent++
	return err
}

// receive reads the answers to one batch.
func (c *client) receive() error {
	for range c.size {
		if err := c.answer(int32(c.read%script + 1)); err != nil {
			return err
		}
		c.read++
	}
	c.done.Add(int64(c.size))
	return nil
}

// answer reads an answer, which must be to the given request and without an error.
func (c *client) answer(xid int32) error {
	head, err := c.in.Peek(4 + replySize)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head))
	got, code := int32(binary.BigEndian.Uint32(head[4:])), int32(binary.BigEndian.Uint32(head[16:]))
	if got != xid || code != 0 {
		return fmt.Errorf("answer %d with error %d: want answer %d without an error", got, code, xid)
	}
	_, err = c.in.Discard(4 + size)
	return err
}

func (c *client) leave() error {
	if _, err := c.conn.Write(rawzk.Frame(rawzk.Request(closing, rawzk.CloseSession()))); err != nil {
		return err
	}
	return c.answer(closing)
}
