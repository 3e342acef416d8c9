package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/docent-zk/docent/contrib/redislock"
)

const aliveWithin = time.Second

func TestMain(m *testing.M) {
	redislock.SetAliveWithin(aliveWithin)
	redis.SetLogger(silent{}) // of connections to servers that were killed
	goleak.VerifyTestMain(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
