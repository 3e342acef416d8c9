package redislock_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/docent-zk/docent/contrib/redislock"
)

const aliveWithin = time.Second

func TestMain(m *testing.M) {
	redislock.SetAliveWithin(aliveWithin)
	goleak.VerifyTestMain(m)
}
