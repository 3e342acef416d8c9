package memnet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// onBothKinds runs a test over loopback and in memory.
func onBothKinds(t *testing.T, test func(t *testing.T, client, server duplex)) {
	for _, kind := range []string{"tcp", "memory"} {
		t.Run(kind, func(t *testing.T) {
			k := bothKinds(t)[kind]
			test(t, k.client.duplex, k.server.duplex)
		})
	}
}

func TestStreamKeepsItsBytes(t *testing.T) {
	onBothKinds(t, func(t *testing.T, client, server duplex) {
		sent := make([]byte, 1<<20)
		rand.NewChaCha8([32]byte{1}).Read(sent)
		var all sync.WaitGroup
		all.Go(func() {
			_, err := io.Copy(server, struct{ io.Reader }{server}) // echo
			report(t, err)
			report(t, server.CloseWrite())
		})
		all.Go(func() {
			writeInParts(t, client, sent)
			report(t, client.CloseWrite())
		})
		got, err := io.ReadAll(client)
		report(t, err)
		if !bytes.Equal(got, sent) {
			t.Errorf("%d bytes came back that differ from the %d sent", len(got), len(sent))
		}
		all.Wait()
	})
}

// writeInParts reuses its buffer, as a caller may.
func writeInParts(t *testing.T, to io.Writer, data []byte) {
	size := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 5000)
	for len(data) > 0 {
		n := copy(buf[:1+size.IntN(len(buf))], data)
		if _, err := to.Write(buf[:n]); err != nil {
			t.Error(err)
			return
		}
		data = data[n:]
		clear(buf)
	}
}

func TestWritesAreWholeAndInOrder(t *testing.T) {
	const writers, each = 8, 200
	onBothKinds(t, func(t *testing.T, client, server duplex) {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					_, err := client.Write([]byte{byte(w), byte(i), byte(w), byte(i)})
					report(t, err)
				}
			})
		}
		next := make([]byte, writers)
		for range writers * each {
			var m [4]byte
			if _, err := io.ReadFull(server, m[:]); err != nil {
				t.Fatal(err)
			}
			w := m[0]
			if int(w) >= writers || m != [4]byte{w, next[w], w, next[w]} {
				t.Fatalf("got %v, the numbers expected are %v", m, next)
			}
			next[w]++
		}
		all.Wait()
	})
}

func TestReadersShareTheStream(t *testing.T) {
	const readers, each = 8, 100
	onBothKinds(t, func(t *testing.T, client, server duplex) {
		var mu sync.Mutex
		seen := map[byte]int{}
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				var b [1]byte
				for {
					if _, err := server.Read(b[:]); err != nil {
						if err != io.EOF {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					seen[b[0]]++
					mu.Unlock()
				}
			})
		}
		for i := range readers * each {
			_, err := client.Write([]byte{byte(i % each)})
			report(t, err)
		}
		report(t, client.Close())
		all.Wait()
		for i := range each {
			if seen[byte(i)] != readers {
				t.Errorf("byte %d was read %d times, want %d", i, seen[byte(i)], readers)
			}
		}
	})
}

func TestCloseEndsEveryRead(t *testing.T) {
	onBothKinds(t, func(t *testing.T, client, _ duplex) {
		const readers = 10
		errs := make(chan error)
		for range readers {
			go func() {
				_, err := client.Read(make([]byte, 1))
				errs <- err
			}()
		}
		report(t, client.Close())
		for range readers {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a read ended with %v", err)
			}
		}
	})
}

// This test is for the race detector. It ends only if no call hangs.
func TestEverythingAtOnce(t *testing.T) {
	onBothKinds(t, func(t *testing.T, client, server duplex) {
		var finite, readers sync.WaitGroup
		for _, end := range []duplex{client, server} {
			for range 3 {
				readers.Go(func() { readUntilItFails(t, end) })
				finite.Go(func() { repeat(t, func() error { _, err := end.Write(make([]byte, 10)); return err }) })
				finite.Go(func() {
					repeat(t, func() error { return end.SetDeadline(time.Now().Add(time.Millisecond)) })
				})
			}
		}
		finite.Wait()
		readers.Go(func() { _ = client.CloseWrite() })
		readers.Go(func() { _ = client.Close() })
		readers.Go(func() { _ = server.Close() })
		readers.Wait()
	})
}

func repeat(t *testing.T, call func() error) {
	for range 500 {
		if err := call(); err != nil && !isTimeout(err) {
			t.Error(err)
		}
	}
}

// readUntilItFails reads until the connection ends. Deadlines shorten the waits.
func readUntilItFails(t *testing.T, from io.Reader) {
	for {
		_, err := from.Read(make([]byte, 10))
		switch {
		case isTimeout(err):
			runtime.Gosched()
		case err == io.EOF, errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
			return
		case err != nil:
			t.Error(err)
			return
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
