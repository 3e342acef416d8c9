// Package sharedzk starts the real servers that the tests of several packages share.
package sharedzk

import (
	"context"
	"strconv"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// Tick is the precision of the servers' time.
const Tick = 200 * time.Millisecond

// ReapSetting is the setting of the interval at which servers look for empty containers, in milliseconds.
const ReapSetting = "znode.container.checkIntervalMs"

// Seldom is an interval between two looks for empty containers. A test does not last that long.
const Seldom = time.Hour

// New starts an ensemble of the given number of servers. A follower may be silent for 12 s on a busy machine.
// No test needs the servers to delete its containers.
func New(ctx context.Context, servers int) (*ensemble.Ensemble, error) {
	return ensemble.New(ctx, servers, ensemble.WithTick(Tick), ensemble.WithConfig("syncLimit", "60"),
		ensemble.WithProperty(ReapSetting, Millis(Seldom)))
}

// Millis returns the text of an interval in a setting.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
