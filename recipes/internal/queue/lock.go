package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Lock is what is acquired by coming to the front of a line, or of several at once. Safe for concurrent use.
type Lock struct {
	Spec
	log    *zap.Logger
	quiet  *quiet
	labels []metrics.Labels // of each path
}

// Spec is what tells one kind of lock from another.
type Spec struct {
	Client    *framework.Client
	Recipe    string   // what measurements and logs call it
	Paths     []string // what measurements and errors call it: one for each lock
	Lines     []*Line
	Key       any       // for re-entry, of the lines together; nil if there is no such thing
	Admission Admission // nil: who is at the front has the lock
	HandOff   *Handoff  // nil: every hold has a node of its own
	Standby   bool      // to wait for long is nothing to warn of
}

// Admission is what is between the front of the line and a lock for which a place in line is not enough.
type Admission interface {
	// Peek returns ErrBusy if the lock cannot be had now; it only reads.
	Peek(ctx context.Context) error
	// Direct acquires the lock without standing in line; ErrBusy if that cannot be.
	Direct(ctx context.Context, s *framework.Session) (*ownership.Hold, error)
	// Admit acquires the lock in exchange for the place at the front. If it must not wait, it fails with ErrBusy instead.
	Admit(ctx context.Context, t *Turn) (*ownership.Hold, error)
	// Holder reads somebody who has the lock.
	Holder(ctx context.Context) (recipes.Participant, error)
}

// New makes a lock. It asks no server.
func New(s Spec) *Lock {
	l := &Lock{Spec: s, quiet: &quiet{}}
	l.log = s.Client.Logger().Named(s.Recipe).With(zap.String("path", l.name()))
	for _, path := range s.Paths {
		l.labels = append(l.labels, metrics.Labels{Recipe: s.Recipe, Path: path})
	}
	return l
}

// With is the same lock with another admission.
func (l *Lock) With(a Admission) *Lock {
	other := *l
	other.Admission = a
	return &other
}

// name is what errors and logs call the lock.
func (l *Lock) name() string {
	const enough = 5
	if more := len(l.Paths) - enough; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(l.Paths[:enough], ", "), more)
	}
	return strings.Join(l.Paths, ", ")
}

// Single makes a lock that is a place in one line.
func Single(client *framework.Client, recipe, path string, rules Rules, data []byte) *Lock {
	return New(Spec{Client: client, Recipe: recipe, Paths: []string{path}, Lines: []*Line{NewLine(client, path, rules, data)}})
}

var (
	// ErrVanished: our node was deleted by somebody else while we waited.
	ErrVanished = errors.New("queue: our node was deleted while waiting")
	// ErrBusy: somebody is ahead, and we are not to wait.
	ErrBusy = errors.New("queue: somebody is ahead")
	// ErrAgain: something has changed between looking and acting.
	ErrAgain = errors.New("queue: look again")

	// errGoroutineEnded: a logger, metrics or a retry policy has called runtime.Goexit on a
	// goroutine of the client's.
	errGoroutineEnded = errors.New("queue: code of the program's has ended the goroutine that waits in line")
)

// LockKey is for re-entry: that of the lock, or of the only line.
func (l *Lock) LockKey() any {
	if l.Key == nil {
		return l.Lines[0].Key()
	}
	return l.Key
}

// Acquire waits in line until the lock is ours. A place that is lost, with the session or because somebody deleted the node, is
// taken again at the end of the line. Whatever the end, no node stays behind that is not held.
func (l *Lock) Acquire(ctx context.Context) (hold *ownership.Hold, err error) {
	l.count(1)
	defer l.tell(time.Now(), -1, &hold, &err)
	a := l.newAlarm(ctx)
	defer a.stop()
	if l.HandOff != nil {
		return l.locally(ctx, a)
	}
	return l.acquire(ctx, a)
}

func (l *Lock) acquire(ctx context.Context, a *alarm) (*ownership.Hold, error) {
	return l.persist(ctx, func(ctx context.Context) (*ownership.Hold, error) { return l.once(ctx, a) })
}

// Try enters the line only if nobody is in it, and leaves it if somebody was faster.
func (l *Lock) Try(ctx context.Context) (hold *ownership.Hold, err error) {
	defer l.tell(time.Now(), 0, &hold, &err)
	if l.HandOff != nil && l.HandOff.Idle > 0 {
		return l.tryLocally(ctx)
	}
	return l.try(ctx)
}

func (l *Lock) try(ctx context.Context) (*ownership.Hold, error) {
	return l.persist(ctx, func(ctx context.Context) (*ownership.Hold, error) {
		if err := l.peek(ctx); err != nil {
			return nil, err
		}
		return l.once(ctx, nil)
	})
}

// persist takes another place when one is lost.
func (l *Lock) persist(ctx context.Context, attempt func(context.Context) (*ownership.Hold, error)) (*ownership.Hold, error) {
	for {
		hold, err := attempt(ctx)
		if again(err) && ctx.Err() == nil {
			l.log.Info("place in line lost: queueing again", zap.Error(err))
			continue
		}
		return hold, l.failed(ctx, err)
	}
}

// again reports whether the place was lost for a reason that does not concern the caller.
func again(err error) bool {
	return errors.Is(err, ErrVanished) || errors.Is(err, framework.ErrSessionLost)
}

// failed turns the end of an attempt into the caller's error.
func (l *Lock) failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBusy):
		err = recipes.ErrNotAcquired
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
	}
	return fmt.Errorf("acquire %s: %w", l.name(), err)
}

// peek reads whether the lock may be had without waiting.
func (l *Lock) peek(ctx context.Context) error {
	for _, line := range l.Lines {
		children, _, err := l.Client.Children(ctx, line.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		case anyone(children, line.rules.Block):
			return ErrBusy
		}
	}
	if l.Admission != nil {
		return l.Admission.Peek(ctx)
	}
	return nil
}

// once takes a place in each line and brings it to the front. Without an alarm it does not wait for others.
func (l *Lock) once(ctx context.Context, a *alarm) (*ownership.Hold, error) {
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if l.Admission != nil {
		hold, err := l.Admission.Direct(ctx, session)
		if !errors.Is(err, ErrBusy) {
			return hold, err
		}
	}
	places, err := enqueue(ctx, session, l.Lines)
	if err != nil {
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			leave(ctx, places)
		}
	}()
	for _, p := range places {
		p.warn()
	}
	a.stand(places)
	hold, err := l.advance(ctx, places, a)
	held = err == nil
	return hold, err
}

// advance brings places to the front.
func (l *Lock) advance(ctx context.Context, places []*place, a *alarm) (*ownership.Hold, error) {
	waited, err := l.arrive(ctx, places, a)
	switch {
	case err != nil:
		return nil, err
	case l.Admission != nil:
		return l.Admission.Admit(ctx, &Turn{place: places[0], alarm: a})
	}
	return l.grant(ctx, places, waited && len(places) > 1)
}

// arrive waits until nobody is ahead of any place, for all of them at the same time.
func (l *Lock) arrive(ctx context.Context, places []*place, a *alarm) (waited bool, err error) {
	if len(places) == 1 {
		return places[0].arrive(ctx, a)
	}
	listAll(ctx, places)
	all, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var mu sync.Mutex
	for _, p := range places {
		running.Go(func() {
			behind, trouble := false, errGoroutineEnded
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				waited = waited || behind
				if trouble != nil && err == nil {
					err = trouble
					stop()
				}
			}()
			behind, trouble = p.arrive(all, a)
		})
	}
	running.Wait()
	return waited, err
}

// listAll asks for the lists of lines that were not asked for behind the creates, a few at a time. What went wrong each place finds out.
func listAll(ctx context.Context, places []*place) {
	for i := maxLists; i < len(places) && ctx.Err() == nil; i++ {
		if before := places[i-maxLists]; before.list != nil {
			_ = before.list.wait(ctx, before.session)
		}
		if p := places[i]; !p.first() && !p.line.accompanied(p.session) {
			p.list = p.line.ask(p.session)
		}
	}
}

// grant makes a hold of places at the front. If we have waited for some of them, the others may have been lost meanwhile.
func (l *Lock) grant(ctx context.Context, places []*place, doubtful bool) (*ownership.Hold, error) {
	session := places[0].session
	lifetime, err := Settle(ctx, session, func(ctx context.Context, again bool) error {
		if again || doubtful {
			return checkAll(ctx, places)
		}
		return confirmAll(ctx, places)
	})
	if err != nil {
		return nil, err
	}
	g := ownership.Grant{Session: session, Lifetime: lifetime, Recipe: l.Recipe, Key: l.Key}
	for _, p := range places {
		lock, node := p.granted()
		g.Locks, g.Nodes = append(g.Locks, lock), append(g.Nodes, node)
	}
	return l.Begin(g), nil
}

// Begin makes a hold of the lock.
func (l *Lock) Begin(g ownership.Grant) *ownership.Hold {
	if entry := l.log.Check(zap.DebugLevel, "acquired"); entry != nil { // else its fields are not made
		entry.Write(logfield.Session(g.Session.ID()), logfield.Token(g.Locks[0].Token))
	}
	return ownership.New(g)
}

func confirmAll(ctx context.Context, places []*place) error {
	for _, p := range places {
		if err := p.confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkAll asks whether all places are still there, in one transaction, after learning the tokens that are not known.
func checkAll(ctx context.Context, places []*place) error {
	if err := confirmAll(ctx, places); err != nil {
		return err
	}
	var checks []framework.Op
	for _, p := range places {
		checks = append(checks, framework.CheckOp(p.path(), -1))
	}
	s := places[0].session
	_, err := Patiently(ctx, s, func(ctx context.Context) ([]framework.Result, error) { return s.Multi(ctx, checks...) })
	return vanished(ctx, err)
}

// Settle is the lifetime of a hold that begins now. A context that has ended loses, even now. A place outlives a suspended connection,
// but where a hold would not, it takes an answer of the servers to go on: then confirm is called again.
func Settle(ctx context.Context, s *framework.Session, confirm func(ctx context.Context, again bool) error) (bridge.Lifetime, error) {
	for again := false; ; again = true {
		lifetime := bridge.OfSession(s).Lifetime()
		if err := confirm(ctx, again); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if err := lifetime.Err(); !errors.Is(err, framework.ErrSuspended) {
			return lifetime, err
		}
	}
}

// leave deletes our nodes, but for those that are not there, or not ours.
func leave(ctx context.Context, places []*place) {
	var nodes []string
	for _, p := range places {
		if !p.gone {
			nodes = append(nodes, p.path())
		}
	}
	if len(nodes) > 0 {
		Withdraw(ctx, places[0].session, nodes...)
	}
}

// leavePatience bounds how long a caller whose attempt has failed waits to see its node gone.
const leavePatience = time.Second

// Withdraw deletes nodes that nobody is to have. The deletion does not depend on ctx: only how long we wait for it does.
func Withdraw(ctx context.Context, s *framework.Session, nodes ...string) {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	err := s.DeleteGuaranteed(ctx, nodes...)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Logger().Debug("left the line, deletion not confirmed yet", zap.Strings("nodes", nodes), zap.Error(err))
	}
}
