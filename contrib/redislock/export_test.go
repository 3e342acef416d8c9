package redislock

import "time"

// SetAliveWithin shortens the time after which a silent subscription is asked whether it is alive.
func SetAliveWithin(d time.Duration) { aliveWithin = d }
