package chaos

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// The locks of a siege. Holders that exclude all others write their tokens to a node, one for each lock.
const (
	siegeMutex    = "/siege/mutex"
	siegeBusy     = "/siege/busy"
	siegeHandoff  = "/siege/hand-off"
	siegeSticky   = "/siege/sticky"
	siegeRW       = "/siege/rw"
	siegePermits  = "/siege/permits"
	siegeMoving   = "/siege/moving"
	siegeElection = "/siege/election"
	siegeLatch    = "/siege/latch"
)

// siegeBetween is the longest pause between two attempts, for most locks.
const siegeBetween = 40 * time.Millisecond

// siegeLimit is the node of the limit of siegeMoving.
const siegeLimit = "/siege-limit"

// siegeLines are the parents of the nodes of holders and waiters.
var siegeLines = []string{
	siegeMutex, siegeBusy, siegeHandoff, siegeSticky, siegeRW, siegePermits + "/leases", siegePermits + "/locks",
	siegeMoving + "/leases", siegeMoving + "/locks", siegeElection, siegeLatch,
}

// siegeLocks are all locks.
var siegeLocks = []string{
	siegeMutex, siegeBusy, siegeHandoff, siegeSticky, siegeRW, siegePermits, siegeMoving, siegeElection, siegeLatch,
}

// tokenPath returns the path of the node that the holders of a lock write to.
func tokenPath(lock string) string { return "/written" + strings.ReplaceAll(lock, "/", "-") }

// acquirer is one way to take one lock, or several as one.
type acquirer struct {
	kind    string
	locks   []string      // in the order of Hold.Tokens
	pause   time.Duration // the longest between two attempts
	acquire func(ctx context.Context) (*recipes.Hold, error)
	below   func(ctx context.Context) (*recipes.Hold, error) // acquires the read side under a write hold, or nil
}

func acquirers(c *framework.Client) ([]acquirer, error) {
	quiet, err1 := mutex.New(c, siegeMutex)
	busy, err2 := mutex.New(c, siegeBusy)
	handoff, err3 := mutex.New(c, siegeHandoff,
		mutex.WithLocalHandoff(mutex.Handoff{Streak: 5, Span: time.Second, Idle: 300 * time.Millisecond}))
	sticky, err4 := mutex.New(c, siegeSticky,
		mutex.WithLocalHandoff(mutex.Handoff{Streak: 5, Span: 2 * time.Second, Idle: time.Second}))
	rw, err5 := rwlock.New(c, siegeRW)
	sem, err6 := semaphore.New(c, siegePermits, permits)
	moving, err7 := semaphore.New(c, siegeMoving, permits, semaphore.WithSharedLimit(siegeLimit))
	both, err8 := multilock.New(c, []string{siegeMutex, siegeBusy})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return nil, err
	}
	one := func(kind, lock string, l recipes.Locker) acquirer {
		return acquirer{kind: kind, locks: []string{lock}, pause: siegeBetween, acquire: l.Acquire}
	}
	writing := one(kindWrite, siegeRW, rw.Write())
	writing.below = rw.Read().Acquire
	seldom := one(kindSticky, siegeSticky, sticky)
	seldom.pause = time.Second
	return []acquirer{
		one(kindMutex, siegeMutex, quiet),
		one(kindMutex, siegeBusy, busy),
		one(kindMutex, siegeBusy, busy),
		one(kindHandoff, siegeHandoff, handoff),
		one(kindHandoff, siegeHandoff, handoff),
		one(kindHandoff, siegeHandoff, handoff),
		seldom,
		one(kindRead, siegeRW, rw.Read()),
		writing,
		one(kindPermit, siegePermits, sem),
		one(kindPermit, siegePermits, sem),
		one(kindPermit, siegeMoving, moving),
		one(kindPermit, siegeMoving, moving),
		{kind: kindMulti, locks: []string{siegeMutex, siegeBusy}, pause: siegeBetween, acquire: both.Acquire},
	}, nil
}
