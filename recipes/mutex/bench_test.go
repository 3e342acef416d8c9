package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
)

// acquireAndRelease is the usual subject of a benchmark.
func acquireAndRelease(ctx context.Context, tb testing.TB, mu *mutex.Mutex) {
	hold, err := mu.Acquire(ctx)
	if err == nil {
		err = hold.Release()
	}
	if err != nil {
		tb.Error(err)
	}
}

func BenchmarkUncontended(b *testing.B) {
	ctx := context.Background()
	mu := newMutex(b, testzk.Connected(b, testzk.Connect()), testzk.Path(b))
	acquireAndRelease(ctx, b, mu) // makes the requests that only the first acquire needs
	b.ReportAllocs()
	for b.Loop() {
		acquireAndRelease(ctx, b, mu)
	}
}

func BenchmarkReentry(b *testing.B) {
	mu := newMutex(b, testzk.Connected(b, testzk.Connect()), testzk.Path(b))
	outer, err := mu.Acquire(context.Background())
	require.NoError(b, err)
	inside := outer.Context(context.Background())
	b.ReportAllocs()
	for b.Loop() {
		acquireAndRelease(inside, b, mu)
	}
	require.NoError(b, outer.Release())
}

// BenchmarkContended has two clients that acquire the lock all the time.
func BenchmarkContended(b *testing.B) {
	path := testzk.Path(b)
	var locks []*mutex.Mutex
	for range 2 {
		locks = append(locks, newMutex(b, testzk.Connected(b, testzk.Connect()), path))
		acquireAndRelease(context.Background(), b, locks[len(locks)-1])
	}
	done := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	for i, mu := range locks {
		go func() {
			for range (b.N + i) / len(locks) {
				acquireAndRelease(context.Background(), b, mu)
			}
			done <- struct{}{}
		}()
	}
	for range locks {
		<-done
	}
}

// BenchmarkLocalHandoff has many goroutines of one client.
func BenchmarkLocalHandoff(b *testing.B) {
	mu := newMutex(b, testzk.Connected(b, testzk.Connect()), testzk.Path(b), mutex.WithLocalHandoff(generous))
	b.ReportAllocs()
	b.SetParallelism(8) // goroutines for each processor
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			acquireAndRelease(context.Background(), b, mu)
		}
	})
}

// BenchmarkSticky has one goroutine that acquires the lock again and again.
func BenchmarkSticky(b *testing.B) {
	mu := newMutex(b, testzk.Connected(b, testzk.Connect()), testzk.Path(b), keeping(generous, time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		acquireAndRelease(context.Background(), b, mu)
	}
}
