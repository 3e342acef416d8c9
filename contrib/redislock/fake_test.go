package redislock_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/contrib/redislock"
)

// fake is a Redis in memory that knows the three scripts, in the time of a synctest bubble. The real
// scripts run in the tests of scripts_test.go and real_test.go.
type fake struct {
	mu       sync.Mutex
	keys     map[string]fakeKey
	counters map[string]int64
	known    map[string]string // scripts by hash
	subs     map[*fakeSubscription]struct{}
	requests atomic.Int64
}

type fakeKey struct {
	owner string
	until time.Time
}

func newFake() *fake {
	return &fake{
		keys: map[string]fakeKey{}, counters: map[string]int64{}, known: map[string]string{},
		subs: map[*fakeSubscription]struct{}{},
	}
}

// answerError is an error that the server answers.
type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

// getLocked returns the owner of a key.
func (f *fake) getLocked(key string) string {
	k, ok := f.keys[key]
	if ok && !time.Now().Before(k.until) {
		delete(f.keys, key)
		return ""
	}
	return k.owner
}

func (f *fake) owner(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.getLocked(key)
}

func (f *fake) delete(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, key)
}

// eval runs a script, which it recognizes by a command that only this script has.
func (f *fake) eval(script string, keys []string, args []any) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests.Add(1)
	owner := f.getLocked(keys[0])
	set := func() {
		f.keys[keys[0]] = fakeKey{args[0].(string), time.Now().Add(time.Duration(args[1].(int64)) * time.Millisecond)}
	}
	switch {
	case strings.Contains(script, "INCR"):
		switch owner {
		case "":
			f.counters[keys[1]]++
			set()
		case args[0]:
			set()
		default:
			return []any{"", time.Until(f.keys[keys[0]].until).Milliseconds()}, nil
		}
		return []any{strconv.FormatInt(f.counters[keys[1]], 10), int64(0)}, nil
	case strings.Contains(script, "PUBLISH"):
		if owner == args[0] {
			delete(f.keys, keys[0])
			for s := range f.subs {
				s.publishLocked(args[2].(string))
			}
			return int64(1), nil
		}
		if f.counters[keys[1]] == args[1].(int64) {
			return int64(1), nil
		}
		return int64(0), nil
	default:
		if owner == args[0] {
			set()
		}
		return owner, nil
	}
}

// link is a client's way to a fake, with faults.
type link struct {
	*fake
	// fault is called before a request and before its answer. It returns an error in place of what
	// follows. Nil: there are no faults.
	fault func(ctx context.Context, answer bool) error

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
	if err := l.pass(ctx, false); err != nil {
		return nil, err
	}
	hash := sha1.Sum([]byte(script))
	l.fake.mu.Lock()
	l.known[hex.EncodeToString(hash[:])] = script
	l.fake.mu.Unlock()
	return l.run(ctx, script, keys, args)
}

// run runs a script whose request has arrived.
func (l *link) run(ctx context.Context, script string, keys []string, args []any) (any, error) {
	answer, err := l.eval(script, keys, args)
	if err := l.pass(ctx, true); err != nil {
		return nil, err
	}
	return answer, err
}

func (l *link) EvalSha(ctx context.Context, hash string, keys []string, args ...any) (any, error) {
	if err := l.pass(ctx, false); err != nil {
		return nil, err
	}
	l.fake.mu.Lock()
	script := l.known[hash]
	l.fake.mu.Unlock()
	if script == "" {
		return nil, answerError("NOSCRIPT No matching script")
	}
	return l.run(ctx, script, keys, args)
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
