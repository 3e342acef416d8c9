package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// ledgerSuffix is what the node beside that of the election is called. It must not be a child: Curator would take it for a candidate.
const ledgerSuffix = "-term"

// ledger is a node in which each leader notes that it leads, and that it resigns. From it the next one knows whether the last one
// vanished, which the deletion of its node does not tell.
type ledger struct {
	path  string
	delay time.Duration
	log   *zap.Logger
}

// term is what the ledger says of the last term.
type term struct {
	Token    int64 `json:"token"`
	Resigned bool  `json:"resigned"`
}

// page is the ledger as the leader who has hold sees it. Only one goroutine at a time may use it.
type page struct {
	*ledger
	hold    *ownership.Hold
	key     any // of the lock, for re-entry
	session *framework.Session
	known   bool // what the ledger says: the following
	last    term
	version int32 // missing: there is none
}

const missing = -1

// open waits, if the last leader vanished, and notes the term that begins with hold, whose lock has the key. The page is nil if there is no
// ledger, or if nothing was noted.
func (l *ledger) open(ctx context.Context, hold *ownership.Hold, key any) (*page, error) {
	if l == nil {
		return nil, nil
	}
	ctx = hold.Context(ctx)
	p := &page{ledger: l, hold: hold, key: key, session: hold.Session()}
	err := p.note(ctx, term{Token: hold.Token()})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return p, err // which may have been noted all the same
}

// resign ends the hold, then notes that it was resigned, then deletes the node: nothing is done under the hold any more once that is noted,
// and nobody reads the note before. It returns what Release does.
func (p *page) resign() error {
	node, held := ownership.Reenter(p.hold.Context(context.Background()), p.key)
	err := p.hold.Release()
	if !held {
		return err
	}
	if p.hold = node; err == nil {
		p.close()
	}
	return cmp.Or(err, node.Release())
}

// close notes that the term was resigned, or lets the next leader wait in vain.
func (p *page) close() {
	ctx, cancel := context.WithTimeout(context.Background(), p.session.Timeout()/3)
	defer cancel()
	if err := p.note(ctx, term{p.hold.Token(), true}); err != nil {
		p.log.Warn("could not note that the leader resigns: the next one will wait as if it had vanished",
			zap.String("path", p.hold.Path()), zap.Error(err))
	}
}

// read reads the ledger, unless it is known.
func (p *page) read(ctx context.Context) error {
	if p.known {
		return nil
	}
	data, err := queue.RetryInSession(ctx, p.session, func(ctx context.Context) ([]byte, error) {
		data, stat, err := p.session.Get(ctx, p.path)
		if err == nil {
			p.version = stat.Version
		}
		return data, err
	})
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		p.known, p.last, p.version = true, term{}, missing
		return nil
	}
	if err != nil {
		return err
	}
	var last term
	if err := json.Unmarshal(data, &last); err != nil || last.Token <= 0 {
		return fmt.Errorf("%s is not the note of a term that it should be: %.100q", p.path, data)
	}
	p.known, p.last = true, last
	return nil
}

// maxNotes is how often something may come in between reading the ledger and writing to it. Nobody else should write.
const maxNotes = 10

// note writes t. What was read may be old, so whenever the ledger turns out to have changed, everything is decided again.
func (p *page) note(ctx context.Context, t term) (err error) {
	for range maxNotes {
		if err = p.attempt(ctx, t); !changed(err) {
			break
		}
	}
	return err
}

// attempt reads the ledger, waits if t begins after a leader that vanished, and writes t over what was read.
func (p *page) attempt(ctx context.Context, t term) error {
	if err := p.read(ctx); err != nil {
		return err
	}
	over := p.last
	if begins := !t.Resigned && over != t; begins && over.Token != 0 && !over.Resigned {
		p.log.Info("the last leader vanished: waiting before leading", zap.String("path", p.hold.Path()),
			zap.Stringer("last", logfield.Hex(over.Token)), zap.Duration("delay", p.delay))
		if err := pause(ctx, nil, p.delay); err != nil {
			return err
		}
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = queue.RetryInSession(ctx, p.session, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.write(ctx, over, t, data)
	})
	return err
}

// errOvertaken: the ledger says something else than when it was decided to write.
var errOvertaken = errors.New("leader: the ledger has changed")

// write writes t over another term, in one transaction with the proof that the hold is held.
func (p *page) write(ctx context.Context, over, t term, data []byte) error {
	if err := p.read(ctx); err != nil {
		return err
	}
	switch p.last {
	case t:
		return nil // an earlier attempt has been applied
	case over:
	default:
		return errOvertaken
	}
	write := framework.SetOp(p.path, data, p.version)
	if p.version == missing {
		write = framework.CreateOp(p.path, data)
	}
	_, err := p.hold.Guard(ctx, write)
	if p.known = err == nil; p.known {
		p.last, p.version = t, p.version+1
	}
	return err
}

// changed reports whether somebody else has made, changed or deleted the ledger meanwhile.
func changed(err error) bool {
	return errors.Is(err, errOvertaken) ||
		errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}
