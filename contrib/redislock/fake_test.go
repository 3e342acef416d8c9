package redislock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/docent-zk/docent/contrib/redislock"
)

// fake is a Redis in memory, which executes the scripts in the time of a synctest bubble.
type fake struct {
	redis    *miniredis.Miniredis
	mu       sync.Mutex
	subs     map[*fakeSubscription]struct{}
	requests atomic.Int64
}

func newFake() *fake {
	f := &fake{redis: miniredis.NewMiniRedis(), subs: map[*fakeSubscription]struct{}{}}
	f.redis.ClockTTL(true)
	conn, err := f.redis.Dial() // starts it
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		panic(err)
	}
	f.redis.Server().SetPreHook(func(c *miniserver.Peer, cmd string, args ...string) bool {
		if cmd != "PUBLISH" {
			return false
		}
		f.publish(args[0])
		c.WriteInt(0)
		return true
	})
	return f
}

// answerError is an error that the server answers.
type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

// do executes a command.
func (f *fake) do(cmd ...string) (any, error) {
	f.requests.Add(1)
	var answer bytes.Buffer
	w := bufio.NewWriter(&answer)
	peer := miniserver.NewPeer(w)
	f.redis.Server().Dispatch(peer, cmd)
	peer.Flush()
	got, err := miniserver.ParseReply(bufio.NewReader(&answer))
	if err != nil {
		return nil, answerError(err.Error())
	}
	return converted(got), nil
}

// converted returns an answer as redislock.Redis has it.
func converted(answer any) any {
	switch answer := answer.(type) {
	case int:
		return int64(answer)
	case []any:
		for i := range answer {
			answer[i] = converted(answer[i])
		}
	case miniserver.Simple:
		return string(answer)
	case []byte:
		return string(answer)
	}
	return answer
}

// owner returns the value of a key.
func (f *fake) owner(key string) string {
	value, err := f.redis.Get(key)
	if err != nil {
		return ""
	}
	return value
}

// count returns how many members a sorted set has.
func (f *fake) count(key string) int {
	members, err := f.redis.ZMembers(key)
	if err != nil {
		return 0
	}
	return len(members)
}

func (f *fake) delete(key string) { f.redis.Del(key) }

func (f *fake) publish(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		s.publishLocked(channel)
	}
}

// link is a client's way to a fake, with faults.
type link struct {
	*fake
	// fault is called before a request and before its answer. It returns an error in place of what
	// follows. Nil: there are no faults.
	fault func(ctx context.Context, answer bool) error
	// repeat is called between two executions of each request. Nil: each one is executed once.
	repeat func()
	// sent is called with each request. Nil: nothing is called.
	sent func(request []string)

	mu  sync.Mutex
	cut chan struct{} // closed when the link is not cut any more; nil: it is not cut
}

var errReset = errors.New("connection reset")

func (l *link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case cut && l.cut == nil:
		l.cut = make(chan struct{})
	case !cut && l.cut != nil:
		close(l.cut)
		l.cut = nil
	}
}

// pass waits while the link is cut.
func (l *link) pass(ctx context.Context, answer bool) error {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if l.fault != nil {
		return l.fault(ctx, answer)
	}
	return nil
}

func (l *link) Eval(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	return l.run(ctx, "EVAL", script, keys, args)
}

func (l *link) EvalSha(ctx context.Context, hash string, keys []string, args ...any) (any, error) {
	return l.run(ctx, "EVALSHA", hash, keys, args)
}

func (l *link) run(ctx context.Context, cmd, script string, keys []string, args []any) (any, error) {
	if err := l.pass(ctx, false); err != nil {
		return nil, err
	}
	request := append([]string{cmd, script, strconv.Itoa(len(keys))}, keys...)
	for _, arg := range args {
		request = append(request, fmt.Sprint(arg))
	}
	if l.sent != nil {
		l.sent(request)
	}
	answer, err := l.do(request...)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return nil, err // no fault parts the two requests for one script
	}
	if l.repeat != nil {
		l.repeat()
		answer, err = l.do(request...)
	}
	if err := l.pass(ctx, true); err != nil {
		return nil, err
	}
	return answer, err
}

type fakeSubscription struct {
	*link
	closed   chan struct{}
	close    func()
	messages chan string
	channels map[string]bool
}

func (l *link) Subscribe(ctx context.Context) (redislock.Subscription, error) {
	if err := l.pass(ctx, false); err != nil {
		return nil, err
	}
	s := &fakeSubscription{
		link: l, closed: make(chan struct{}), messages: make(chan string, 1000), channels: map[string]bool{},
	}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	l.fake.mu.Lock()
	defer l.fake.mu.Unlock()
	l.subs[s] = struct{}{}
	return s, nil
}

func (s *fakeSubscription) publishLocked(channel string) {
	if s.channels[channel] {
		select {
		case s.messages <- channel:
		default: // it is lost
		}
	}
}

func (s *fakeSubscription) change(ctx context.Context, channels []string, subscribed bool) error {
	if err := s.pass(ctx, false); err != nil {
		return err
	}
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	for _, channel := range channels {
		s.channels[channel] = subscribed
		s.publishLocked(channel)
	}
	return nil
}

func (s *fakeSubscription) Subscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, channels, true)
}

func (s *fakeSubscription) Unsubscribe(ctx context.Context, channels ...string) error {
	return s.change(ctx, channels, false)
}

func (s *fakeSubscription) Receive(ctx context.Context) (string, error) {
	select {
	case channel := <-s.messages:
		return channel, s.pass(ctx, true)
	case <-ctx.Done():
		return "", ctx.Err()
	case <-s.closed:
		return "", errors.New("closed")
	}
}

func (s *fakeSubscription) Close() error {
	s.close()
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	delete(s.subs, s)
	return nil
}

// firstAnswerAfter returns the fault of a link whose first answer is late, by d.
func firstAnswerAfter(d time.Duration) func(context.Context, bool) error {
	var late atomic.Bool
	return func(_ context.Context, answer bool) error {
		if answer && late.CompareAndSwap(false, true) {
			time.Sleep(d)
		}
		return nil
	}
}

// faults fails, delays and loses requests and answers at random.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	off    bool
}

func (f *faults) fault(ctx context.Context, _ bool) error {
	f.mu.Lock()
	kind, delay := f.random.IntN(20), time.Duration(f.random.Int64N(int64(20*time.Millisecond)))
	if kind == 1 {
		delay = time.Duration(f.random.Int64N(int64(2 * ttl)))
	}
	off := f.off
	f.mu.Unlock()
	if off {
		return nil
	}
	if kind == 0 {
		return errReset
	}
	// Not even the end of ctx stops what is under way: the server executes it late.
	time.Sleep(delay)
	return nil
}

func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
}
