package counter_test

import (
	"context"
	"encoding/binary"
	"iter"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/zktest"
)

// seen is one element of a sequence.
type seen struct {
	value int64
	err   error
}

// observe sends what a sequence yields to a channel, which is closed at its end.
func observe[T int32 | int64](all iter.Seq2[T, error]) <-chan seen {
	c := make(chan seen, 1000)
	go func() {
		defer close(c)
		for value, err := range all {
			c <- seen{int64(value), err}
		}
	}()
	return c
}

// Curator: testMultiClients of SharedCount. An observer may skip values, and sees the others in order.
func TestObserversSeeTheValuesInOrder(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(testzk.Context(t))
		defer cancel()
		var observers []<-chan seen
		for i := range 5 {
			n := newCount(t, client(t, srv, string(rune('a'+i))), path, -1)
			observers = append(observers, observe(n.Observe(ctx)))
		}
		for _, o := range observers {
			require.Equal(t, seen{-1, nil}, <-o)
		}
		n := newCount(t, client(t, srv, "writer"), path, 0)
		for i := range int32(100) {
			require.NoError(t, n.Set(ctx, i))
		}
		for _, o := range observers {
			for last := int64(-1); last < 99; {
				next := <-o
				require.NoError(t, next.err)
				require.Greater(t, next.value, last)
				last = next.value
			}
		}
		cancel()
		for _, o := range observers {
			for extra := range o {
				require.Fail(t, "more after the last value", "%v", extra)
			}
		}
	})
}

// Curator: testDisconnectReconnectEventDoesNotFireValueWatcher and
// testDisconnectReconnectWithMultipleClients. Here a reconnect without a change yields nothing.
func TestObserveGoesOnThroughLostConnections(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(testzk.Context(t))
		defer cancel()
		a := newAtomic(t, client(t, srv, "a"), path)
		all := observe(a.Observe(ctx))
		require.Equal(t, seen{0, nil}, <-all)
		for i := range int64(10) {
			srv.Client("a").Refuse(true)
			srv.Client("a").Drop()
			if i%3 == 0 {
				expire(t, srv, "a")
			}
			if i%2 == 0 {
				require.NoError(t, srv.Set(orCreate(t, srv), binary.BigEndian.AppendUint64(nil, uint64(i+1))))
			}
			time.Sleep(500 * time.Millisecond)
			srv.Client("a").Refuse(false)
			if i%2 == 0 {
				require.Equal(t, seen{i + 1, nil}, <-all)
			} else {
				time.Sleep(5 * time.Second)
				require.Empty(t, all)
			}
		}
	})
}

// orCreate returns the path of a node that exists.
func orCreate(t *testing.T, srv *zktest.Server) string {
	if !srv.Exists(path) {
		require.NoError(t, srv.Create(path, nil))
	}
	return path
}

func TestObserveYieldsErrorsAndGoesOn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(testzk.Context(t))
		defer cancel()
		c := client(t, srv, "a")
		all := observe(newCount(t, c, path, 7).Observe(ctx))
		require.Equal(t, seen{7, nil}, <-all)
		require.NoError(t, srv.Set(path, []byte("bad")))
		bad := <-all
		failed(t, bad.err, framework.NotApplied, counter.ErrCorrupt)
		require.NoError(t, srv.Set(path, []byte{0, 0, 0, 7}))
		require.Equal(t, seen{7, nil}, <-all, "it is known again")
		require.NoError(t, srv.Set(path, []byte{0, 0, 0, 8}))
		require.Equal(t, seen{8, nil}, <-all)
		require.NoError(t, srv.Delete(path))
		require.Equal(t, seen{7, nil}, <-all, "the seed")
		require.False(t, srv.Exists(path))
		require.NoError(t, srv.Create(path, []byte{0, 0, 0, 9}))
		require.Equal(t, seen{9, nil}, <-all)

		srv.Client("a").Refuse(true)
		srv.Client("a").Drop()
		for lost := range all {
			require.Error(t, lost.err)
			require.True(t, framework.IsTransient(lost.err), "%v", lost.err)
			break
		}
		srv.Client("a").Refuse(false)
		for next := range all {
			if next.err == nil {
				require.Equal(t, seen{9, nil}, next)
				break
			}
		}
		require.NoError(t, c.Close())
		last := <-all
		require.ErrorIs(t, last.err, framework.ErrClosed)
		_, more := <-all
		require.False(t, more)
	})
}

func TestObserveEndsWithARefusal(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		_, err := c.Create(testzk.Context(t), "/secret", nil, framework.ACL(zk.WorldACL(zk.PermWrite)...))
		require.NoError(t, err)
		errs := 0
		for _, err := range newAtomic(t, c, "/secret").Observe(testzk.Context(t)) {
			failed(t, err, framework.NotApplied, zk.ErrNoAuth)
			errs++
		}
		require.Equal(t, 1, errs)
		var none context.Context
		for _, err := range newAtomic(t, c, "/secret").Observe(none) {
			require.ErrorIs(t, err, framework.ErrNilContext)
			errs++
		}
		require.Equal(t, 2, errs)
		ended, cancel := context.WithCancel(background())
		cancel()
		for range newAtomic(t, c, "/secret").Observe(ended) {
			require.Fail(t, "an element")
		}
	})
}

// A program may change the data that it was given.
func TestObservedDataIsTheProgramsOwn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(testzk.Context(t))
		defer cancel()
		v := newValue(t, client(t, srv, "a"), path, "aaa")
		seen := make(chan string, 10)
		go func() {
			defer close(seen)
			for data := range v.Observe(ctx) {
				seen <- string(data)
				copy(data, "bbb")
			}
		}()
		require.Equal(t, "aaa", <-seen)
		time.Sleep(time.Second)
		require.NoError(t, srv.Set(path, []byte("bbb")))
		require.Equal(t, "bbb", <-seen)
		time.Sleep(time.Second)
		require.NoError(t, srv.Set(path, []byte("aaa")))
		require.Equal(t, "aaa", <-seen)
	})
}
