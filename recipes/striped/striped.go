package striped

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/internal/report"
	"github.com/docent-zk/docent/recipes/multilock"
)

// Striped is locks for any number of keys, on a fixed number of mutexes. It has no state of its own,
// and is safe for concurrent use. Curator has no counterpart; in Java it is Guava's Striped on top of
// InterProcessMutex.
type Striped struct {
	client   *framework.Client // nil in the zero value
	path     string
	numbers  []int  // of stripes: n, and that of WithPrevious
	data     []byte // of lock nodes
	programs *programs
}

// New returns the locks at path, which must be a node of its own, on n stripes: 1 to 1000. The first
// acquire creates missing nodes as containers. New makes no request. It returns an error for a nil or
// unusable client, an invalid path, "/", and a number out of range.
func New(c *framework.Client, path string, n int, opts ...Option) (*Striped, error) {
	s, err := newStriped(c, path, n, opts)
	if err != nil {
		return nil, fmt.Errorf("new striped lock: %w", err)
	}
	return s, nil
}

func newStriped(c *framework.Client, path string, n int, opts []Option) (*Striped, error) {
	err := check.Path(c, path)
	if err == nil {
		err = checkNumber(n)
	}
	if err != nil {
		return nil, err
	}
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, err
	}
	data, err := cfg.data.Bytes()
	if err != nil {
		return nil, err
	}
	identity, err := nodedata.OwnIdentity()
	if err != nil {
		return nil, err
	}
	numbers := []int{n}
	switch cfg.previous {
	case 0:
	case n:
		return nil, fmt.Errorf("WithPrevious: %d is the present number", n)
	default:
		numbers = append(numbers, cfg.previous)
	}
	return &Striped{c, path, numbers, data, newPrograms(c, path+"/programs", numbers, identity)}, nil
}

// Path returns the path given to New, and "" for the zero value.
func (s *Striped) Path() string { return s.path }

// Index returns the stripe of a key among n stripes: the first eight bytes of the key's SHA-256 hash,
// as a big-endian number without a sign, modulo n. It never changes. Index panics if n is not
// positive.
func Index(key string, n int) int {
	hash := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(hash[:8]) % uint64(n))
}

// For returns the lock of a key. Keys with the same stripe have the same lock: see Index. For makes
// no request.
func (s *Striped) For(key string) *Lock { return s.ForAll(key) }

// ForAll returns one lock for several keys, in any order: it has the stripe of each key, once. All
// stripes are acquired in one transaction, so such locks cannot deadlock with each other. Without
// keys there is nothing to acquire, and its methods return an error. ForAll makes no request.
func (s *Striped) ForAll(keys ...string) *Lock {
	if s.client == nil {
		return &Lock{}
	}
	l := &Lock{striped: s}
	if len(keys) > 0 {
		l.make(s.paths(keys))
	}
	return l
}

// paths returns the directories of the stripes of keys, each once, in one order for all programs.
func (s *Striped) paths(keys []string) (paths []string) {
	for _, n := range s.numbers {
		for _, key := range keys {
			paths = append(paths, fmt.Sprintf("%s/%d/%d", s.path, n, Index(key, n)))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Lock is the lock of one or several keys. It is safe for concurrent use.
type Lock struct {
	striped *Striped    // nil in the zero value
	lock    *queue.Lock // nil without keys
	keys    []any       // of the stripes, for re-entry
	reports *report.Reporter
}

// recipe is the name of the recipe in metrics.
const recipe = "striped"

func (l *Lock) make(paths []string) {
	s := l.striped
	spec := queue.Spec{Client: s.client, Recipe: recipe, Paths: paths}
	for _, path := range paths {
		q := queue.NewQueue(s.client, path, queue.Exclusive, s.data)
		spec.Queues, l.keys = append(spec.Queues, q), append(l.keys, q.Key())
	}
	if len(paths) > 1 {
		spec.Key = severalKey{l.keys[0], strings.Join(paths, " ")}
	}
	l.lock = queue.New(spec)
	l.reports = report.New(l.lock)
}

// severalKey identifies several stripes.
type severalKey struct {
	first any
	paths string
}

// Paths returns the paths of the stripes, the directories of the lock nodes. Each is the path of a
// mutex.Mutex. It returns nil for the zero value and without keys.
func (l *Lock) Paths() []string {
	if l.lock == nil {
		return nil
	}
	return slices.Clone(l.lock.Paths)
}

// Acquire waits for all stripes of the lock, and returns one hold of them. Its Token is the same
// number for all keys, and each later holder of one of the keys has a larger one, also while the
// number of stripes is changed.
//
// With the context of a valid hold that has all of the stripes, such as one of ForAll for more keys,
// it re-enters: it returns another hold at once. If the context carries holds of some of the stripes
// only, it fails with multilock.ErrPartlyHeld. If it carries none of them, but another one of the same Striped,
// Acquire waits while that one is held. Two programs that do so with two keys can deadlock. Use
// ForAll, because two keys may have the same stripes in either order.
//
// Acquire fails with ErrStripes if other programs run with another number of stripes. Otherwise it
// waits and fails as mutex.Mutex.Acquire does. The first acquire of a session registers the session,
// in four requests. If the session is lost while Acquire waits, it registers and enqueues again.
func (l *Lock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return l.acquire(ctx, func() (*ownership.Hold, error) {
		session, err := l.striped.client.Session(ctx)
		if err == nil {
			err = l.striped.programs.register(ctx, session) // so that ErrStripes comes before a long wait
		}
		if err != nil {
			return nil, l.lock.CallerError(ctx, err)
		}
		return l.reports.Acquire(ctx, l.lock)
	})
}

// TryAcquire is Acquire that does not wait for other clients. If one of the stripes is held or waited
// for, it fails with recipes.ErrNotAcquired, and creates no lock node.
func (l *Lock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return l.acquire(ctx, func() (*ownership.Hold, error) { return l.reports.Try(ctx, l.lock) })
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *Lock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

var errNoKeys = errors.New("a striped lock without keys")

func (l *Lock) check(ctx context.Context) error {
	err := check.Call(ctx, "striped", "Lock", l.striped != nil)
	if err == nil && l.lock == nil {
		err = errNoKeys
	}
	return err
}

func (l *Lock) acquire(ctx context.Context, how func() (*ownership.Hold, error)) (*recipes.Hold, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	hold, some := ownership.ReenterAll(ctx, l.keys)
	switch {
	case hold != nil:
		return recipes.NewHold(hold, nil)
	case some:
		return nil, fmt.Errorf("acquire %v: %w", l.lock, multilock.ErrPartlyHeld)
	}
	for {
		hold, err := l.attempt(ctx, how)
		if err == nil || !errors.Is(err, framework.ErrSessionLost) || ctx.Err() != nil {
			return recipes.NewHold(hold, err)
		}
	}
}

// attempt acquires the lock. The hold counts only once its session is registered, and is lost with
// that session. So of two programs that do not exclude each other, only one has holds.
func (l *Lock) attempt(ctx context.Context, how func() (*ownership.Hold, error)) (_ *ownership.Hold, err error) {
	hold, err := how()
	if err != nil {
		return nil, err
	}
	registered := false
	defer func() {
		if !registered {
			undo(ctx, hold)
		}
	}()
	if err := l.striped.programs.register(ctx, hold.Session()); err != nil {
		return nil, l.lock.CallerError(ctx, err)
	}
	registered = true
	hold.ShowFirst()
	return hold, nil
}

// undoTimeout bounds how long a failed acquire waits for the release of the stripes.
const undoTimeout = time.Second

// undo releases a hold that no caller gets. ctx limits only the wait for the release.
func undo(ctx context.Context, hold *ownership.Hold) {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	_ = ownership.ReleaseAll(ctx, []*ownership.Hold{hold})
}
