package redislock

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// kind is what the kinds of locks differ in: their requests. Each request may be executed twice, and
// after a later one of the same owner.
type kind interface {
	// acquire asks for the lock. If it is not granted, and the acquire waits, some kinds leave a record
	// of the waiter, which acquire renews.
	acquire(ctx context.Context, owner string, waits bool) (grant, error)
	// renew returns owner, or the owner that has the lock in its place, or "" if there is none.
	renew(ctx context.Context, owner string) (string, error)
	// release deletes all that the owner has. It reports whether the lock was the owner's to the end.
	release(ctx context.Context, owner string) (bool, error)
}

// grant is the answer to an acquire.
type grant struct {
	granted bool
	token   int64         // 0: there is none
	owner   string        // that releases the lock; "": nothing needs to be released
	left    time.Duration // until a lock that is not granted may be free; negative: not known
}

// single is a kind whose records are on one server. All of its scripts have these KEYS, which begin
// with the lock, the counter of tokens and the owners that were released. Their ARGV are the owner, the
// time to live in ms, the channel, whether an acquire waits (0 or 1), and the number of permits.
type single struct {
	c       *Client
	keys    []string
	channel string
	permits int64
	records bool // of waiters

	acquireScript, renewScript, releaseScript *script
}

func (s *single) run(ctx context.Context, script *script, owner string, waits int64) (any, error) {
	return script.run(ctx, s.c.redis, s.keys, owner, s.c.ttl(), s.channel, waits, s.permits)
}

func (s *single) acquire(ctx context.Context, owner string, waits bool) (grant, error) {
	n := int64(0)
	if waits && s.records {
		n = 1
	}
	g := grant{owner: owner}
	answer, err := s.run(ctx, s.acquireScript, owner, n)
	if err != nil {
		return g, err
	}
	if parts, ok := answer.([]any); ok && len(parts) == 2 {
		token, isText := parts[0].(string)
		left, isNumber := parts[1].(int64)
		switch {
		case !isText || !isNumber:
		case token == "":
			if n == 0 {
				g.owner = ""
			}
			g.left = time.Duration(left) * time.Millisecond
			return g, nil
		default:
			if g.token, err = strconv.ParseInt(token, 10, 64); err == nil && g.token > 0 {
				g.granted = true
				return g, nil
			}
		}
	}
	return g, fmt.Errorf("%w to an acquire: %v", errUnexpected, answer)
}

func (s *single) renew(ctx context.Context, owner string) (string, error) {
	answer, err := s.run(ctx, s.renewScript, owner, 0)
	if err != nil {
		return "", err
	}
	other, ok := answer.(string)
	if !ok {
		return "", fmt.Errorf("%w to a renewal: %v", errUnexpected, answer)
	}
	return other, nil
}

func (s *single) release(ctx context.Context, owner string) (bool, error) {
	answer, err := s.run(ctx, s.releaseScript, owner, 0)
	return answer == int64(1), err
}
