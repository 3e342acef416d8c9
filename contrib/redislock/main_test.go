package redislock_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/internal/leaks"
)

const aliveWithin = 3 * time.Second

func TestMain(m *testing.M) {
	redislock.SetAliveWithin(aliveWithin)
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // parallel tests mostly wait
		panic(err)
	}
	redis.SetLogger(silent{}) // of connections to servers that were killed
	leaks.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
