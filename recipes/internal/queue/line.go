package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
)

// Rules is what tells one kind of lock from another.
type Rules struct {
	Recipe string   // what measurements call it
	Name   string   // suffix of our own nodes
	Block  []string // suffixes of the nodes that stand in the way when they are ahead
}

// Line is the line at one path. Safe for concurrent use.
type Line struct {
	client *framework.Client
	path   string
	rules  Rules
	data   []byte
	log    *zap.Logger

	handoff *Handoff // nil: every hold has a node of its own

	mu     sync.Mutex
	parent parent
	warned time.Time // when the last warning of a long wait was due
}

// parent is what is remembered of the parent node, so that entering the line can write it back.
type parent struct {
	known  bool
	data   []byte
	locked bool // its ACL forbids writing
}

// New makes a line. It asks no server.
func New(client *framework.Client, path string, rules Rules, data []byte) *Line {
	return &Line{client: client, path: path, rules: rules, data: data, log: client.Logger().With(zap.String("path", path))}
}

// place is our node in the line.
type place struct {
	session *framework.Session
	member
	token int64            // its czxid; 0 while it is not known
	first bool             // nobody was in line when it was created
	watch *framework.Watch // on the node itself, once somebody is ahead
	data  []byte           // what was read with it
}

func (l *Line) node(name string) string { return l.path + "/" + name }

var (
	// errVanished: our node was deleted by somebody else while we waited.
	errVanished = errors.New("queue: our node was deleted while waiting")
	// errBusy: somebody is ahead, and we are not to wait.
	errBusy = errors.New("queue: somebody is ahead")
)

// Acquire waits in line until the lock is ours. A place that is lost, with the session or because somebody deleted the node, is
// taken again at the end of the line. Whatever the end, no node stays behind that is not held.
func (l *Line) Acquire(ctx context.Context) (_ *recipes.Hold, err error) {
	defer l.measure(time.Now(), &err)
	defer l.count()()
	a := l.newAlarm(ctx)
	defer a.stop()
	if l.handoff != nil {
		return l.locally(ctx, a)
	}
	return l.acquire(ctx, a)
}

func (l *Line) acquire(ctx context.Context, a *alarm) (*recipes.Hold, error) {
	return l.persist(ctx, func(ctx context.Context) (*recipes.Hold, error) {
		return l.once(ctx, func(ctx context.Context, p *place, ahead []member) error {
			a.start()
			return l.wait(ctx, p, ahead)
		})
	})
}

// Try enters the line only if nobody is in it, and leaves it if somebody was faster.
func (l *Line) Try(ctx context.Context) (_ *recipes.Hold, err error) {
	defer l.measure(time.Now(), &err)
	return l.persist(ctx, l.tryOnce)
}

// persist takes another place when one is lost.
func (l *Line) persist(ctx context.Context, attempt func(context.Context) (*recipes.Hold, error)) (*recipes.Hold, error) {
	for {
		hold, err := attempt(ctx)
		if again(err) && ctx.Err() == nil {
			l.log.Info("place in line lost: queueing again", zap.Error(err))
			continue
		}
		return hold, l.failed(ctx, err)
	}
}

// Key identifies the lock: the kind, the path and the connection, whatever view the path is named through.
func (l *Line) Key() any { return lineKey{l.client.Key(l.path), l.rules.Name} }

type lineKey struct {
	path any
	kind string
}

func (l *Line) tryOnce(ctx context.Context) (*recipes.Hold, error) {
	children, _, err := l.client.Children(ctx, l.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
	case err != nil:
		return nil, err
	case len(lineup(children, l.rules.Block)) > 0:
		return nil, errBusy
	}
	return l.once(ctx, func(context.Context, *place, []member) error { return errBusy })
}

// again reports whether the place was lost for a reason that does not concern the caller.
func again(err error) bool {
	return errors.Is(err, errVanished) || errors.Is(err, framework.ErrSessionLost)
}

// failed turns the end of an attempt into the caller's error.
func (l *Line) failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBusy):
		err = recipes.ErrNotAcquired
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
	}
	return fmt.Errorf("acquire %s: %w", l.path, err)
}

// once takes a place and, if somebody is ahead, waits as wait does.
func (l *Line) once(ctx context.Context, wait func(context.Context, *place, []member) error) (*recipes.Hold, error) {
	session, err := l.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	p, err := l.enqueue(ctx, session)
	if err != nil {
		return nil, err
	}
	hold, err := l.advance(ctx, p, wait)
	if err != nil && !errors.Is(err, errVanished) { // what is not there, or not ours, is not ours to delete
		l.leave(ctx, p)
	}
	return hold, err
}

// advance brings a place to the front.
func (l *Line) advance(ctx context.Context, p *place, wait func(context.Context, *place, []member) error) (*recipes.Hold, error) {
	if !p.first {
		ahead, err := l.ahead(ctx, p)
		if err == nil && len(ahead) > 0 {
			err = wait(ctx, p, ahead)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.grant(ctx, p)
}

// grant makes a hold of a place at the front. A context that has ended loses, even now. A place outlives a suspended connection, but where
// a hold would not, it takes an answer of the servers to go on.
func (l *Line) grant(ctx context.Context, p *place) (*recipes.Hold, error) {
	footing := p.session.Footing()
	if err := l.confirm(ctx, p); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	switch err := footing.Err(); {
	case errors.Is(err, framework.ErrSuspended):
		p.token = 0
		return l.grant(ctx, p)
	case err != nil:
		return nil, err
	}
	l.log.Debug("acquired", zap.Int64("session", p.session.ID()), zap.Int64("token", p.token))
	return recipes.NewHold(recipes.Grant{
		Session: p.session,
		Footing: footing,
		Recipe:  l.rules.Recipe,
		Key:     l.Key(),
		Node:    l.node(p.name),
		Token:   p.token,
		Watch:   p.watch,
		Data:    p.data,
	}), nil
}

// confirm learns the token of a node where the answer to its creation did not tell, and that the node is ours.
func (l *Line) confirm(ctx context.Context, p *place) error {
	if p.token != 0 {
		return nil
	}
	stat, err := patiently(ctx, p, func(ctx context.Context) (*zk.Stat, error) {
		return p.session.Exists(ctx, l.node(p.name))
	})
	if err != nil {
		return vanished(err)
	}
	return p.learn(stat)
}

// learn takes over what a Stat of our node says.
func (p *place) learn(stat *zk.Stat) error {
	if stat.EphemeralOwner != p.session.ID() {
		return fmt.Errorf("%w: it belongs to session %#x", errVanished, stat.EphemeralOwner)
	}
	p.token = stat.Czxid
	return nil
}

// vanished tells that a missing node is ours.
func vanished(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errVanished
	}
	return err
}

// leave deletes our node. The deletion does not depend on ctx: only how long we wait for it does.
func (l *Line) leave(ctx context.Context, p *place) {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	err := p.session.DeleteGuaranteed(ctx, l.node(p.name))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		l.log.Debug("left the line, deletion not confirmed yet", zap.Error(err))
	}
}

// leavePatience bounds how long a caller whose attempt has failed waits to see its node gone.
const leavePatience = time.Second
