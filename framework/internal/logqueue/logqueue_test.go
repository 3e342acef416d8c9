package logqueue

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// observed returns a logger through q, and what it has written. at is called before each entry.
func observed(q *Queue, at func(zapcore.Entry)) (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	hook := zap.Hooks(func(e zapcore.Entry) error {
		at(e)
		return nil
	})
	return q.Logger(zap.New(zapcore.NewTee(core)).WithOptions(hook)), logs
}

func nothing(zapcore.Entry) {}

func messages(logs *observer.ObservedLogs) (all []string) {
	for _, e := range logs.All() {
		all = append(all, e.Message)
	}
	return all
}

func TestEntriesAreWrittenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		log, logs := observed(&q, nothing)
		log = log.Named("name").With(zap.Int("a", 1))
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			log.Info(want[i], zap.Int("b", i))
			log.Debug("not enabled")
		}
		q.Close(time.Second)
		require.Equal(t, want, messages(logs))
		last := logs.All()[99]
		require.Equal(t, "name", last.LoggerName)
		require.Equal(t, map[string]any{"a": int64(1), "b": int64(99)}, last.ContextMap())
	})
}

func TestNothingWaitsForALogThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		release := make(chan struct{})
		log, logs := observed(&q, func(zapcore.Entry) { <-release })
		begun := time.Now()
		log.Info("first")
		log.Info("second")
		require.Zero(t, time.Since(begun))
		q.Close(time.Second)
		require.Equal(t, time.Second, time.Since(begun), "Close waits no longer than it is told")
		log.Info("third")
		close(release)
		q.Close(time.Second)
		require.Equal(t, []string{"first", "second", "third"}, messages(logs))
	})
}

func TestEntriesAfterCloseAreWrittenAtOnce(t *testing.T) {
	var q Queue
	log, logs := observed(&q, nothing)
	q.Close(time.Second)
	log.Info("late")
	require.Equal(t, []string{"late"}, messages(logs))
}

// The log panics, or ends the goroutine as testing.T.FailNow does.
func TestLogThatEndsItsGoroutineEndsNothingElse(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var q Queue
			log, logs := observed(&q, func(e zapcore.Entry) {
				if e.Message == "end" {
					end()
				}
			})
			for _, message := range []string{"first", "end", "end", "last"} {
				log.Info(message)
			}
			q.Close(time.Minute)
			got := messages(logs)
			require.Equal(t, "first", got[0])
			require.Equal(t, "last", got[len(got)-1])
		})
	}
}

// blocked returns a logger through q that waits for a value of release at each entry, and waits at the first.
func blocked(q *Queue) (log *zap.Logger, logs *observer.ObservedLogs, release chan struct{}) {
	release = make(chan struct{})
	log, logs = observed(q, func(zapcore.Entry) { <-release })
	log.Info("blocks")
	synctest.Wait()
	return log, logs, release
}

func TestEntriesAboveTheLimitAreCounted(t *testing.T) {
	const more = 7
	for name, later := range map[string][]string{"nothing follows": nil, "an entry follows": {"later"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q Queue
				log, logs, release := blocked(&q)
				for range limit + more {
					log.Info("entry")
				}
				for range limit/2 + 1 {
					release <- struct{}{}
				}
				synctest.Wait()
				for _, message := range later { // there is room for it
					log.Info(message)
				}
				close(release)
				q.Close(time.Second)
				require.Equal(t, limit, logs.FilterMessage("entry").Len())
				rest := logs.All()[1+limit:]
				require.Len(t, rest, 1+len(later), "the entry on the missing ones is in their place")
				require.Contains(t, rest[0].Message, "missing")
				require.Equal(t, map[string]any{"entries": int64(more)}, rest[0].ContextMap())
				require.Equal(t, zap.WarnLevel, rest[0].Level)
			})
		})
	}
}

// waiting returns how many entries wait.
func waiting(q *Queue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// The log is slow, and entries are made for long.
func TestQueueStaysWithinItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		log, logs, release := blocked(&q)
		const rounds, burst = 5, limit + 10
		for range rounds {
			for range burst {
				log.Info("entry")
				require.LessOrEqual(t, waiting(&q), limit)
			}
			release <- struct{}{}
			synctest.Wait()
		}
		close(release)
		q.Close(time.Second)
		missing := 0
		for _, e := range logs.FilterMessageSnippet("missing").All() {
			missing += int(e.ContextMap()["entries"].(int64))
		}
		require.Equal(t, rounds*burst, missing+logs.FilterMessage("entry").Len(), "each entry is written or counted")
	})
}

// lockingCore takes a lock that is held while the log blocks, as some handlers of slog do.
type lockingCore struct {
	zapcore.Core
	lock chan struct{}
}

func (c lockingCore) wait() {
	c.lock <- struct{}{}
	<-c.lock
}

func (c lockingCore) Enabled(zapcore.Level) bool {
	c.wait()
	return true
}

func (c lockingCore) With(fields []zapcore.Field) zapcore.Core {
	c.wait()
	return lockingCore{c.Core.With(fields), c.lock}
}

func TestNothingAsksALogThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		inner, logs := observer.New(zap.InfoLevel)
		lock := make(chan struct{}, 1)
		log := q.Logger(zap.New(lockingCore{inner, lock}))
		lock <- struct{}{}
		log.With(zap.Int("a", 1)).Info("entry")
		q.Close(time.Second)
		require.Zero(t, logs.Len())
		<-lock
		q.Close(time.Second)
		require.Equal(t, map[string]any{"a": int64(1)}, logs.All()[0].ContextMap())
	})
}

func TestSyncAndAnEntryAboveErrorWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, wait := range map[string]func(log *zap.Logger){
			"sync":  func(log *zap.Logger) { require.NoError(t, log.Sync()) },
			"panic": func(log *zap.Logger) { require.Panics(t, func() { log.Panic("last") }) },
		} {
			var q Queue
			log, logs := observed(&q, func(zapcore.Entry) { time.Sleep(time.Millisecond) })
			log.Info("entry")
			wait(log)
			require.Contains(t, messages(logs), "entry", name)
			require.Zero(t, waiting(&q), name)
			q.Close(time.Second)
		}
	})
}

func TestLoggerThatLogsNothingHasNoQueue(t *testing.T) {
	var q Queue
	require.Equal(t, zapcore.NewNopCore(), q.Logger(zap.NewNop().Named("name")).Core())
}

func TestLogIsSafeForConcurrentUse(t *testing.T) {
	var q Queue
	log, logs := observed(&q, nothing)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				log.Info("entry")
			}
		})
	}
	wg.Wait()
	q.Close(time.Minute)
	require.Equal(t, 4000, logs.Len())
}

// endingWith is a core of which With calls a function.
type endingWith struct {
	zapcore.Core
	end func()
}

func (c endingWith) With(fields []zapcore.Field) zapcore.Core {
	c.end()
	return c.Core.With(fields)
}

func TestFieldsThatFailOnceAreAddedAtTheNextEntry(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var q Queue
			calls := 0
			inner, logs := observer.New(zap.InfoLevel)
			log := q.Logger(zap.New(endingWith{inner, func() {
				if calls++; calls == 1 {
					end()
				}
			}})).With(zap.Int("a", 1))
			for _, message := range []string{"lost", "second", "last"} {
				log.Info(message)
			}
			q.Close(time.Minute)
			require.Equal(t, []string{"second", "last"}, messages(logs))
			require.Equal(t, 2, logs.FilterField(zap.Int("a", 1)).Len())
			require.Equal(t, 2, calls)
		})
	}
}
