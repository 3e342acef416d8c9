package barrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/retry"
)

// Cyclic is a barrier at which n parties meet again and again. When n of them wait, all n pass, and
// the next generation begins. Safe for concurrent use. Curator has no counterpart; Java:
// java.util.concurrent.CyclicBarrier.
type Cyclic struct {
	place
	n       int
	remains remains
}

// NewCyclic returns the cyclic barrier of n parties at path. It makes no request. It returns an error
// if c is nil or a zero value, for an invalid path, and if n is not between 1 and 5000.
func NewCyclic(c *framework.Client, path string, n int) (*Cyclic, error) {
	at, err := newPlace(c, path)
	if err != nil {
		return nil, fmt.Errorf("new cyclic barrier: %w", err)
	}
	if err := checkParties(n); err != nil {
		return nil, fmt.Errorf("new cyclic barrier %s: %w", path, err)
	}
	return &Cyclic{place: at, n: n}, nil
}

// cycle is the data of the barrier's node, as JSON.
type cycle struct {
	Parties    int      `json:"parties"`
	Generation int64    `json:"generation"` // that waits
	Passed     []string `json:"passed"`     // the ids of the parties of the generation before
}

// Await waits until n parties wait, and returns the number of the generation in which this one was
// counted: 0, 1 and so on. All n parties of a generation return its number. A party is one call of
// Await; a call by another goroutine is another party.
//
// Await lasts through lost connections and lost sessions. A party that dies, or gives up, before its
// generation is complete is not counted, and the others wait for another one. They do not fail:
// there is no broken barrier.
//
// If another client deletes a party's node, and the party hears of it only when two more generations have
// passed, it returns the number of its generation, as if it had been counted.
//
// Await fails when ctx ends; with framework.ErrClosed when the client is closed; with ErrParties if
// the barrier was created for another n, or its node has data of another kind, or the last generation has
// begun; with ErrNodeDeleted if another client deletes the party's node or that of the barrier; with
// framework.ErrTooLarge if the nodes of n parties do not fit into one transaction; and with what the
// servers refuse. Before it fails it takes the party back, for which it waits up to one second. If the
// party was counted before that, Await succeeds. Otherwise framework.OutcomeOf says whether it may be
// counted: not applied means that it is not and will not be. If the barrier's node is deleted, that is
// unknown.
func (b *Cyclic) Await(ctx context.Context) (generation int64, err error) {
	if err := b.begin(ctx, "Cyclic"); err != nil {
		return 0, &framework.Error{Op: awaiting, Path: b.path, Outcome: framework.NotApplied, Err: err}
	}
	for {
		generation, err = b.attempt(ctx)
		if err == nil {
			return generation, nil
		}
		missed := errors.Is(err, errMissed) || framework.OutcomeOf(err) == framework.NotApplied && b.outlasts(ctx, err)
		if !missed {
			return 0, err
		}
	}
}

const awaiting = "await cyclic barrier"

// errMissed means that a generation is over, and that a party was not counted in it.
var errMissed = errors.New("barrier: the generation is over")

// attempt waits as one party of one generation. Unless the error is of outcome NotApplied, the party
// may have been counted.
func (b *Cyclic) attempt(ctx context.Context) (generation int64, err error) {
	p, err := b.arrive(ctx)
	if p == nil {
		return 0, b.awaitError(ctx, framework.NotApplied, err)
	}
	if err == nil {
		err = p.pass(ctx)
	}
	if err != nil {
		err = p.withdraw(ctx, err)
	}
	return p.generation, err
}

// party is a party that has created its node.
type party struct {
	*Cyclic
	session    *framework.Session
	generation int64
	barrier    int64  // the czxid of the barrier's node
	version    int32  // of its data, that of the generation
	data       []byte // of the barrier's node
	id         string
	created    bool // false: the answer was lost
	deleted    bool // by a request of its own, perhaps
}

func (p *party) own() string { return p.child(p.prefix() + p.id) }

// prefix begins the names of all parties of the generation.
func (p *party) prefix() string { return strconv.FormatInt(p.generation, 10) + "-" }

// arrive creates the node of a party of the present generation. It returns a party with an error if
// the node may be there.
func (b *Cyclic) arrive(ctx context.Context) (*party, error) {
	if err := b.remains.clear(ctx, b.client); err != nil {
		return nil, err
	}
	session, err := b.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	p, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	p.session, p.id = session, newID()
	// Once: a node that was counted after a lost answer is deleted, and must not be created again.
	err = retry.Do(ctx, retry.Never(), nil, func(ctx context.Context) error {
		_, err := session.Multi(ctx, framework.CheckOp(p.path, p.version),
			framework.CreateOp(p.own(), nil, framework.Ephemeral(), bridge.Named()))
		return err
	})
	p.created = err == nil
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return nil, ErrNodeDeleted
	case ctxerr.Answered(ctx, err, zk.ErrBadVersion):
		return nil, errMissed
	case err != nil && framework.OutcomeOf(err) == framework.NotApplied:
		return nil, err
	}
	return p, err
}

// fence has the servers refuse to create the node of the party, whose request may still be on its way: the
// request checks the version of the barrier's node, and fence writes that node.
func (p *party) fence(ctx context.Context) error {
	_, err := p.client.Set(ctx, p.path, p.data, p.version)
	if isChanged(ctx, err) {
		return nil // by another party, or the barrier is deleted
	}
	return err
}

// awaitError returns the error of an Await.
func (b *Cyclic) awaitError(ctx context.Context, outcome framework.Outcome, err error) error {
	return &framework.Error{Op: awaiting, Path: b.path, Outcome: outcome, Err: b.cause(ctx, err)}
}

// read returns a party of the generation that waits. It creates the barrier's node if that is missing.
func (b *Cyclic) read(ctx context.Context) (*party, error) {
	for {
		data, stat, err := b.client.Get(ctx, b.path)
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			if err != nil {
				return nil, err
			}
			now, err := b.parse(data)
			if err != nil {
				return nil, err
			}
			if now.Generation == math.MaxInt64 {
				return nil, fmt.Errorf("%w: generation %d is the last", ErrParties, now.Generation)
			}
			return &party{
				Cyclic: b, generation: now.Generation, barrier: stat.Czxid, version: stat.Version, data: data,
			}, nil
		}
		data, _ = json.Marshal(cycle{Parties: b.n, Passed: []string{}}) // never fails
		_, err = b.client.Create(ctx, b.path, data, framework.Parents())
		if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNodeExists) {
			return nil, err
		}
	}
}

// isReplaced reports whether an answer for the barrier's node says that the node of the party's
// barrier is deleted.
func (p *party) isReplaced(ctx context.Context, stat *zk.Stat, err error) bool {
	return ctxerr.Answered(ctx, err, zk.ErrNoNode) || err == nil && stat.Czxid != p.barrier
}

func (b *Cyclic) parse(data []byte) (c cycle, err error) {
	err = json.Unmarshal(data, &c)
	if err != nil || c.Parties == 0 || c.Generation < 0 {
		return cycle{}, fmt.Errorf("%w: the data %.80q is not that of a cyclic barrier", ErrParties, data)
	}
	if c.Parties != b.n {
		return cycle{}, fmt.Errorf("%w: %d here, %d at the path", ErrParties, b.n, c.Parties)
	}
	return c, nil
}

// pass waits until the party is counted. The servers list all nodes that are older than the party's.
// So the last of n parties sees n, and counts them. The others wait only for that.
func (p *party) pass(ctx context.Context) error {
	for {
		w, err := queue.RetryInSession(ctx, p.session, p.look)
		if err != nil || w.counted {
			return err
		}
		if w.again {
			continue
		}
		if err := p.await(ctx, w.cycle, w.own); err != nil {
			return err
		}
	}
}

// meeting is what a party has seen.
type meeting struct {
	counted    bool
	again      bool // to be looked at again at once
	cycle, own *framework.Watch
}

// look reports whether the party is counted, and counts the parties if n are there.
func (p *party) look(ctx context.Context) (m meeting, err error) {
	data, stat, watch, err := p.session.GetW(ctx, p.path)
	if p.isReplaced(ctx, stat, err) {
		return m, ErrNodeDeleted
	}
	if err != nil {
		return m, err
	}
	m.cycle = watch
	now, err := p.parse(data)
	if err != nil {
		return m, err
	}
	if now.Generation > p.generation {
		m.counted, err = p.wasCounted(ctx, now)
		return m, err
	}
	_, _, m.own, err = p.session.GetW(ctx, p.own())
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		if m.again = m.cycle.Event() != 0; !m.again { // otherwise it was counted since the first read
			err = fmt.Errorf("%w: %s", ErrNodeDeleted, p.own())
		}
	}
	if err != nil || m.again {
		return m, unless(m.again, err)
	}
	names, list, err := p.session.Children(ctx, p.path)
	if p.isReplaced(ctx, list, err) {
		return m, ErrNodeDeleted
	}
	if err != nil {
		return m, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, p.prefix()) })
	if len(names) < p.n {
		return m, nil
	}
	slices.Sort(names)
	m.again = true
	return m, p.trip(ctx, stat.Version, names[:p.n])
}

// wasCounted reports whether the party was counted in its generation, which is over. The
// transaction that counts a party deletes its node.
func (p *party) wasCounted(ctx context.Context, now cycle) (bool, error) {
	last := now.Generation == p.generation+1
	if last && slices.Contains(now.Passed, p.id) {
		return true, nil
	}
	_, err := p.session.Exists(ctx, p.own())
	switch {
	case err == nil:
		return false, errMissed
	case !ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return false, err
	case last:
		return false, fmt.Errorf("%w: %s", ErrNodeDeleted, p.own())
	}
	return true, nil
}

// trip counts parties, and begins the next generation, in one transaction. It fails if one of the
// parties has gone, or has been counted.
func (p *party) trip(ctx context.Context, version int32, names []string) error {
	next := cycle{Parties: p.n, Generation: p.generation + 1}
	var ops []framework.Op
	for _, name := range names {
		ops = append(ops, framework.DeleteOp(p.child(name), -1))
		next.Passed = append(next.Passed, strings.TrimPrefix(name, p.prefix()))
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	_, err = p.session.Multi(ctx, append(ops, framework.SetOp(p.path, data, version))...)
	if isChanged(ctx, err) {
		return nil // to be looked at again
	}
	return err
}

// withdrawTime is for how long a party that gives up waits until it is known not to be counted.
const withdrawTime = time.Second

// withdraw deletes the node of a party that gives up because of reason. It returns nil if the party
// was counted before. The outcome of the error is NotApplied if it was not and will not be.
func (p *party) withdraw(caller context.Context, reason error) error {
	ctx := caller
	passing := framework.IsTransient(reason) || errors.Is(reason, framework.ErrSessionLost)
	if !passing || ctx.Err() != nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
		defer cancel()
	}
	for {
		counted, err := p.takeBack(ctx, errors.Is(reason, errMissed))
		switch {
		case err == nil && counted:
			return nil
		case err == nil:
			return p.awaitError(caller, framework.NotApplied, reason)
		case !p.outlasts(ctx, err):
			p.remains.add(p.own())
			return p.awaitError(caller, framework.Unknown, reason)
		}
	}
}

// takeBack deletes the party's node through any session, and reports whether the party was counted
// before. missed means that it is known not to be.
func (p *party) takeBack(ctx context.Context, missed bool) (counted bool, err error) {
	if !p.created && !missed {
		if err := p.fence(ctx); err != nil {
			return false, err
		}
	}
	err = p.client.DeleteGuaranteed(ctx, p.own())
	gone := ctxerr.Answered(ctx, err, zk.ErrNoNode)
	p.deleted = p.deleted || !gone
	if err != nil && !gone || missed {
		return false, unless(gone, err)
	}
	data, stat, err := p.client.Get(ctx, p.path) // also if it was deleted: an earlier request may have come too late
	switch {
	case p.isReplaced(ctx, stat, err):
		return false, errUncertain
	case err != nil:
		return false, err
	}
	now, err := p.parse(data)
	switch {
	case err != nil:
		return false, err
	case now.Generation <= p.generation:
		return false, nil
	case now.Generation == p.generation+1:
		return slices.Contains(now.Passed, p.id), nil
	case !p.deleted && p.created && p.session.Err() == nil:
		return true, nil
	}
	return false, errUncertain
}

// unless returns err unless it is expected.
func unless(expected bool, err error) error {
	if expected {
		return nil
	}
	return err
}

// errUncertain means that the node of a party or that of the barrier is gone, and with it what tells
// whether the party was counted.
var errUncertain = errors.New("barrier: not known whether the party was counted")
