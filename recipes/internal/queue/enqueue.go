package queue

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
)

const (
	// warnFrom is the sequence number from which a line warns that its parent's counter will run out.
	warnFrom = 1 << 30
	// maxRebuilds is how often a parent that is not there is made anew before that is an error: servers reap empty containers.
	maxRebuilds = 10
)

// enqueue takes a place at the end of the line.
func (l *Line) enqueue(ctx context.Context, s *framework.Session) (*place, error) {
	for rebuilds := 0; ; {
		known, err := l.learnParent(ctx, s)
		if err != nil {
			return nil, err
		}
		p, err := l.enter(ctx, s, known)
		switch {
		case err == nil:
			return l.checkCounter(p), nil
		case errors.Is(err, errLocked):
			l.setParent(parent{known: true, locked: true})
		case errors.Is(err, zk.ErrNoNode) && rebuilds < maxRebuilds:
			rebuilds++
			l.setParent(parent{})
		case errors.Is(err, zk.ErrNodeExists):
			return nil, fmt.Errorf("the counter of sequence numbers of %s is stuck (delete it while nobody uses the lock): %w", l.path, err)
		default:
			return nil, err
		}
	}
}

// learnParent reads the parent, and creates it if it is not there, unless it is known already.
func (l *Line) learnParent(ctx context.Context, s *framework.Session) (parent, error) {
	l.mu.Lock()
	known := l.parent
	l.mu.Unlock()
	for !known.known {
		data, _, err := s.Get(ctx, l.path)
		switch {
		case err == nil:
			known = parent{known: true, data: data}
		case errors.Is(err, zk.ErrNoAuth):
			known = parent{known: true, locked: true}
		case errors.Is(err, zk.ErrNoNode):
			if err := s.CreateContainers(ctx, l.path); err != nil {
				return parent{}, err
			}
		default:
			return parent{}, err
		}
		l.setParent(known)
	}
	return known, nil
}

func (l *Line) setParent(p parent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parent = p
}

// errLocked: the parent's ACL forbids writing its data.
var errLocked = errors.New("queue: the parent must not be written")

// enter creates our node: in one transaction with the parent's data, or alone where the parent must not be written.
func (l *Line) enter(ctx context.Context, s *framework.Session, known parent) (*place, error) {
	kind := []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
	if known.locked {
		node, err := s.Create(ctx, l.node(l.rules.Name), l.data, kind...)
		if err != nil {
			return nil, err
		}
		return l.place(s, node, nil)
	}
	results, err := s.Multi(ctx,
		framework.CreateOp(l.node(l.rules.Name), l.data, kind...),
		framework.SetOp(l.path, known.data, -1))
	if err != nil {
		if len(results) == 2 && errors.Is(results[1].Err, zk.ErrNoAuth) {
			return nil, errLocked
		}
		return nil, err
	}
	return l.place(s, results[0].Path, results[1].Stat)
}

// place is the place of a node that was created; stat is the parent's as of that transaction, or nil if the answer was lost.
func (l *Line) place(s *framework.Session, node string, stat *zk.Stat) (*place, error) {
	m, ok := parse(path.Base(node), []string{l.rules.Name})
	if !ok {
		return nil, fmt.Errorf("the server named our node %q: no sequence number behind %q", node, l.rules.Name)
	}
	p := &place{session: s, member: m}
	if stat != nil {
		p.token, p.first = stat.Mzxid, stat.NumChildren == 1
	}
	return p, nil
}

func (l *Line) checkCounter(p *place) *place {
	if p.seq >= warnFrom || p.seq < 0 {
		l.log.Warn("the parent's counter of sequence numbers is running out, Curator clients will not exclude each other then: "+
			"delete the parent while nobody uses the lock", zap.Int32("sequence", p.seq))
	}
	return p
}
