package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// ErrCrowded: somebody else has what we would have to have alone.
var ErrCrowded = errors.New("queue: there are others in front")

// Beside makes a hold at the place of another hold of the same directory, in one transaction, as long as that one is valid: nobody who
// waits comes between. The token is that of the other.
func (l *Lock) Beside(ctx context.Context, h *ownership.Hold) (hold *ownership.Hold, err error) {
	defer l.tell(time.Now(), 0, &hold, &err)
	hold, err = l.beside(ctx, h, func(*place) error { return nil })
	return hold, l.failed(ctx, err)
}

// BesideAlone is Beside if nobody but h is in front: no node that does not have one of those that block everybody ahead. Otherwise it
// fails with ErrCrowded, at once and without harm to h.
func (l *Lock) BesideAlone(ctx context.Context, h *ownership.Hold, barriers ...string) (hold *ownership.Hold, err error) {
	defer l.tell(time.Now(), 0, &hold, &err)
	own := []string{path.Base(h.Path())}
	children, _, err := l.Client.Children(ctx, l.Lines[0].path)
	if err == nil {
		err = l.Lines[0].alone(children, barriers, own)
	}
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	hold, err = l.beside(ctx, h, func(p *place) error {
		list, err := p.listed(ctx)
		if err != nil {
			return err
		}
		return p.line.alone(list.children, barriers, append(own, p.name))
	})
	return hold, l.failed(ctx, err)
}

// beside puts a node at the place of h, and makes a hold of it if settled has no objection.
func (l *Lock) beside(ctx context.Context, h *ownership.Hold, settled func(*place) error) (*ownership.Hold, error) {
	line := l.Lines[0]
	m, ok := parse(path.Base(h.Path()), line.rules.all())
	if !ok {
		return nil, fmt.Errorf("%q has no place in line", h.Path())
	}
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if session.ID() != h.Session().ID() {
		return nil, errors.Join(framework.ErrSessionLost, h.Err())
	}
	done, err := Entry{
		Nodes: []NewNode{{
			Dir: line.Dir, Name: line.rules.Name + m.digits(), Data: line.data,
			Options: []framework.CreateOption{framework.Ephemeral(), framework.Protected()},
		}},
		With: []framework.Op{framework.CheckOp(line.node(m.name), -1)},
	}.Do(ctx, session)
	var refused *RefusedError
	if errors.As(err, &refused) {
		if _, ended := h.Guard(ctx); ended != nil { // which makes it notice
			return nil, ended
		}
	}
	if err != nil {
		return nil, err
	}
	p, err := line.place(session, done.Nodes[0])
	if err != nil {
		Withdraw(ctx, session, done.Nodes...)
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			leave(ctx, []*place{p})
		}
	}()
	p.token = h.Token()
	if err := settled(p); err != nil {
		return nil, err
	}
	hold, err := l.grant(ctx, []*place{p}, false)
	held = err == nil
	return hold, err
}

// digits are what the name of a node ends in that is to stand beside m. At the end of the counter, where numbers tell nothing, whoever
// holds is ahead of all who wait, and so is the last number before.
func (m member) digits() string {
	if m.atEnd() {
		return fmt.Sprintf("%010d", math.MaxInt32-1)
	}
	return fmt.Sprintf("%010d", m.seq)
}

// alone checks that among children nobody but own is in front: whoever else there is has a barrier ahead, and that is behind us.
func (l *Line) alone(children, barriers, own []string) error {
	line := slices.DeleteFunc(lineup(children, l.rules.all()), func(m member) bool { return slices.Contains(own, m.name) })
	if len(line) == 0 {
		return nil
	}
	first := line[0]
	_, isBarrier := parse(first.name, barriers)
	mine, _ := parse(own[0], l.rules.all())
	// A number that another one has too does not tell who is behind it, and at the end of the counter none does.
	tells := len(line) == 1 || line[1].seq != first.seq && !first.atEnd()
	if isBarrier && tells && (first.atEnd() || before(mine.seq, first.seq)) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrCrowded, first.name)
}
