package counter_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
)

// These tests run on real servers too.

func TestCountersOnServers(t *testing.T) {
	t.Parallel()
	ctx, path := testzk.Context(t), testzk.Path(t)
	a, b := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	observer := testzk.Observer(t)

	number := newAtomic(t, a, path+"/atomic")
	added(t, number, 5, 5)
	added(t, newAtomic(t, b, path+"/atomic"), -7, -2)
	added(t, number, 1, -1)
	wrote, err := number.CompareAndSet(ctx, 5, 6)
	require.NoError(t, err)
	require.False(t, wrote)
	wrote, err = number.CompareAndSet(ctx, -1, 6)
	require.NoError(t, err)
	require.True(t, wrote)
	data, _, err := observer.Get(path + "/atomic")
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 6}, data)

	count := newCount(t, a, path+"/count", 3)
	sum, err := count.Add(ctx, 4)
	require.NoError(t, err)
	require.Equal(t, int32(7), sum)
	data, _, err = observer.Get(path + "/count")
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 7}, data)

	value := newValue(t, a, path+"/value", "one")
	old, err := value.GetVersioned(ctx)
	require.NoError(t, err)
	now, wrote, err := value.CompareAndSet(ctx, old, []byte("two"))
	require.NoError(t, err)
	require.True(t, wrote)
	require.Equal(t, "two", string(now.Value))
	_, wrote, err = newValue(t, b, path+"/value", "").CompareAndSet(ctx, old, []byte("three"))
	require.NoError(t, err)
	require.False(t, wrote)

	text, err := counter.NewAtomic(a, path+"/text", counter.WithText())
	require.NoError(t, err)
	added(t, text, -12, -12)
	data, _, err = observer.Get(path + "/text")
	require.NoError(t, err)
	require.Equal(t, "-12", string(data))
}

func TestClientsAddAtTheSameTimeOnServers(t *testing.T) {
	t.Parallel()
	const clients, adds = 4, 25
	path := testzk.Path(t)
	var all sync.WaitGroup
	for range clients {
		a := newAtomic(t, testzk.Connected(t, testzk.Connect()), path)
		all.Go(func() {
			for range adds {
				if _, err := a.Add(testzk.Context(t), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	added(t, newAtomic(t, testzk.Connected(t, testzk.Connect()), path), 1, clients*adds+1)
	testzk.Empty(t, path)
}

// Connections are lost again and again while clients add. Each add is applied once and reported as
// applied.
func TestAddsThroughLostConnectionsOnServers(t *testing.T) {
	t.Parallel()
	const adds = 100
	p, path := testzk.Proxy(t), testzk.Path(t)
	other := newAtomic(t, testzk.Connected(t, testzk.Connect()), path)
	a := newAtomic(t, testzk.Connected(t, p.Addr()), path)
	for i := range adds {
		if i%5 == 0 {
			done := make(chan struct{})
			go func() { defer close(done); p.DropConnections() }()
			defer func() { <-done }()
		}
		_, err := a.Add(testzk.Context(t), 1)
		require.NoError(t, err)
		if i%3 == 0 {
			_, err = other.Add(testzk.Context(t), 1000)
			require.NoError(t, err)
		}
	}
	added(t, a, 1, adds+1+1000*((adds+2)/3))
}

func TestSessionIsLostBetweenUpdatesOnServers(t *testing.T) {
	t.Parallel()
	p, path := testzk.Proxy(t), testzk.Path(t)
	c := testzk.Connected(t, p.Addr(), testzk.Mortal())
	a := newAtomic(t, c, path)
	added(t, a, 1, 1)
	session, err := c.Session(t.Context())
	require.NoError(t, err)
	p.Blackhole(true)
	testzk.Closes(t, session.Done(), "the session does not end")
	p.Blackhole(false)
	added(t, a, 1, 2)
}

func TestObserveThroughAnOutageOnServers(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	c, path := testzk.Connected(t, server.Connect()), testzk.Path(t)
	n := newCount(t, c, path, 1)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan int32)
	go func() {
		defer close(seen)
		for now, err := range n.Observe(ctx) {
			if err == nil { // an error of the connection passes
				seen <- now
			}
		}
	}()
	sees := func(want int32) {
		select {
		case now := <-seen:
			require.Equal(t, want, now)
		case <-testzk.Context(t).Done():
			require.FailNow(t, "a number is not seen", "%d", want)
		}
	}
	sees(1)
	for next := int32(2); next < 5; next++ {
		server.Kill(t)
		server.Start(t)
		for bounded := testzk.Context(t); ; {
			err := n.Set(bounded, next)
			if err == nil {
				break
			}
			require.True(t, framework.IsTransient(err), "%v", err)
		}
		sees(next)
	}
	cancel()
	for range seen {
	}
}

// All processes take their numbers from one counter: none is handed out twice.
func TestSequencesOnServers(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var numbers []int64
	for i := range 3 {
		a := newAtomic(t, testzk.Connected(t, testzk.Connect()), path)
		s, err := counter.NewSequence(a, int64(5+i))
		require.NoError(t, err)
		for range 3 {
			all.Go(func() {
				for range 30 {
					n, err := s.Next(testzk.Context(t))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					numbers = append(numbers, n)
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	slices.Sort(numbers)
	require.Len(t, slices.Compact(numbers), 270)
}

// kazoo's Counter writes repr(value), and has no data at first.
func TestTextIsThatOfKazoo(t *testing.T) {
	t.Parallel()
	path, observer := testzk.Path(t), testzk.Observer(t)
	c := testzk.Connected(t, testzk.Connect())
	_, err := c.Create(testzk.Context(t), path, nil, framework.Parents())
	require.NoError(t, err)
	a := newAtomic(t, c, path, counter.WithText())
	for i := range int64(3) {
		added(t, a, 100, 100*(i+1))
		data, stat, err := observer.Get(path)
		require.NoError(t, err)
		require.Equal(t, strconv.FormatInt(100*(i+1), 10), string(data))
		_, err = observer.Set(path, fmt.Append(nil, 100*(i+1)), stat.Version)
		require.NoError(t, err)
	}
	for _, bad := range []string{"1.5", "x", "0x10", "1e3", "99999999999999999999"} {
		_, err = observer.Set(path, []byte(bad), -1)
		require.NoError(t, err)
		testzk.Everywhere(t)
		_, err := a.Get(testzk.Context(t))
		failed(t, err, framework.NotApplied, counter.ErrCorrupt)
	}
}
