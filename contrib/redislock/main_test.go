package redislock_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/docent-zk/docent/contrib/redislock"
)

const aliveWithin = 3 * time.Second

func TestMain(m *testing.M) {
	redislock.SetAliveWithin(aliveWithin)
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // parallel tests mostly wait
		panic(err)
	}
	redis.SetLogger(silent{}) // of connections to servers that were killed
	// This one ends by itself within a second after its client was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
