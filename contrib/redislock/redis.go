package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis has the operations that the locks need of a client of Redis. NewClient makes one of go-redis;
// programs with another client implement it and call NewClientOf. The methods are called
// concurrently. A call should return when its context ends. Close of a Client waits for the calls
// that are under way.
//
// An error that the server answered must have a method RedisError(), as those of go-redis have. Each
// other error means that it is unknown whether the request was executed. A request may be sent more
// than once.
type Redis interface {
	// Eval and EvalSha run a script. An argument is a string or an int64. A result is a string, an
	// int64, nil, or a []any of these.
	Eval(ctx context.Context, script string, keys []string, args ...any) (any, error)
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) (any, error)
	// Subscribe returns a subscription to no channel. ctx does not limit it.
	Subscribe(ctx context.Context) (Subscription, error)
}

// Subscription receives messages. Receive is called by one goroutine, and the other methods are
// called by another one at the same time.
type Subscription interface {
	Subscribe(ctx context.Context, channels ...string) error
	Unsubscribe(ctx context.Context, channels ...string) error
	// Receive returns the channel of the next message. It also returns the name of a channel once it
	// is subscribed, first or after a connection was lost: messages may have been missed until then.
	// It returns an error when Close is called.
	Receive(ctx context.Context) (channel string, err error)
	Close() error
}

// errRing is returned for a client whose locks would not exclude each other.
var errRing = errors.New("redislock: a redis.Ring cannot have locks: it moves keys that are held to another server")

// goRedis is Redis by go-redis.
type goRedis struct{ redis.UniversalClient }

func (r goRedis) Eval(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	return r.UniversalClient.Eval(ctx, script, keys, args...).Result()
}

func (r goRedis) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) (any, error) {
	return r.UniversalClient.EvalSha(ctx, sha1, keys, args...).Result()
}

func (r goRedis) Subscribe(ctx context.Context) (Subscription, error) {
	return &goRedisSubscription{PubSub: r.UniversalClient.Subscribe(ctx)}, nil
}

type goRedisSubscription struct {
	*redis.PubSub
	asked bool // a ping has no answer yet
}

// aliveWithin is how long a subscription may be silent before it is asked whether it is alive, and
// then again how long it may be silent before it counts as lost.
var aliveWithin = 5 * time.Second // tests shorten it

func (s *goRedisSubscription) Receive(ctx context.Context) (string, error) {
	for {
		msg, err := s.PubSub.ReceiveTimeout(ctx, aliveWithin)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && !s.asked:
			s.asked = true
			if err := s.PubSub.Ping(ctx); err != nil {
				return "", err
			}
			continue
		case err != nil:
			return "", err
		}
		s.asked = false
		switch msg := msg.(type) {
		case *redis.Message:
			return msg.Channel, nil
		case *redis.Subscription:
			if msg.Kind == "subscribe" {
				return msg.Channel, nil
			}
		}
	}
}

// isAnswer reports whether an error is an answer of the server that will not change by itself.
func isAnswer(err error) bool {
	var answer interface{ RedisError() }
	if !errors.As(err, &answer) {
		return errors.Is(err, redis.ErrClosed) || errors.Is(err, errUnexpected)
	}
	text := fmt.Sprint(answer)
	for _, passing := range passingAnswers {
		// Before version 7, Redis has the answers to the commands of a script within another one.
		if strings.HasPrefix(text, passing+" ") || strings.HasPrefix(text, "ERR Error running script") &&
			strings.Contains(text, " -"+passing+" ") {
			return false
		}
	}
	return true
}

// isOfAnotherKind reports whether an error says that a key has a value of another type.
func isOfAnotherKind(err error) bool {
	return err != nil && isAnswer(err) && strings.Contains(err.Error(), "WRONGTYPE ")
}

// passingAnswers are what the errors of servers begin with that start, fail over or are busy.
var passingAnswers = []string{
	"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "ASK", "NOREPLICAS", "READONLY", "TRYAGAIN",
	"ERR max number of clients",
}
