package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// ledgerSuffix is what the node beside that of the election is called. It must not be a child: Curator would take it for a candidate.
const ledgerSuffix = "-term"

// ledger is a node in which each leader notes that it leads, and that it resigns. From it the next one knows whether the last one
// vanished, which the deletion of its node does not tell.
type ledger struct {
	path  string
	delay time.Duration
}

// term is what the ledger says of the last term.
type term struct {
	Token    int64 `json:"token"`
	Resigned bool  `json:"resigned"`
}

// open waits, if the last leader vanished, and notes the term that begins with hold.
func (l *ledger) open(ctx context.Context, hold *recipes.Hold) error {
	if l == nil {
		return nil
	}
	ctx = hold.Context(ctx)
	last, _, err := l.read(ctx, recipes.SessionOf(hold))
	if err != nil {
		return err
	}
	if last.Token != 0 && !last.Resigned {
		recipes.SessionOf(hold).Logger().Info("the last leader vanished: waiting before leading", zap.String("path", hold.Path()),
			zap.Int64("last", last.Token), zap.Duration("delay", l.delay))
		if err := pause(ctx, l.delay); err != nil {
			return err
		}
	}
	return l.note(ctx, hold, term{Token: hold.Token()})
}

// close notes that the term resigns, or lets the next leader wait in vain.
func (l *ledger) close(hold *recipes.Hold) {
	if l == nil || hold.Err() != nil {
		return
	}
	session := recipes.SessionOf(hold)
	ctx, cancel := context.WithTimeout(context.Background(), session.Timeout()/3)
	defer cancel()
	if err := l.note(ctx, hold, term{hold.Token(), true}); err != nil {
		session.Logger().Warn("could not note that the leader resigns: the next one will wait as if it had vanished",
			zap.String("path", hold.Path()), zap.Error(err))
	}
}

func (l *ledger) read(ctx context.Context, s *framework.Session) (last term, version int32, err error) {
	type reading struct {
		data []byte
		stat *zk.Stat
	}
	r, err := queue.Patiently(ctx, s, func(ctx context.Context) (r reading, err error) {
		r.data, r.stat, err = s.Get(ctx, l.path)
		return r, err
	})
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return term{}, missing, nil
	}
	if err != nil {
		return term{}, 0, err
	}
	if err := json.Unmarshal(r.data, &last); err != nil || last.Token <= 0 {
		return term{}, 0, fmt.Errorf("%s is not the note of a term that it should be: %.100q", l.path, r.data)
	}
	return last, r.stat.Version, nil
}

// missing is the version of a ledger that is not there.
const missing = -1

// maxNotes is how often something may come in between reading the ledger and writing to it. Nobody else should write.
const maxNotes = 10

// note writes t, in one transaction with the proof that the hold is held.
func (l *ledger) note(ctx context.Context, hold *recipes.Hold, t term) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	session := recipes.SessionOf(hold)
	for range maxNotes {
		if err = l.write(ctx, session, hold, t, data); !changed(err) {
			break
		}
	}
	return err
}

func (l *ledger) write(ctx context.Context, s *framework.Session, hold *recipes.Hold, t term, data []byte) error {
	_, err := queue.Patiently(ctx, s, func(ctx context.Context) (struct{}, error) {
		last, version, err := l.read(ctx, s)
		if err != nil || last == t {
			return struct{}{}, err // an earlier attempt has been applied
		}
		write := framework.SetOp(l.path, data, version)
		if version == missing {
			write = framework.CreateOp(l.path, data)
		}
		_, err = hold.Guard(ctx, write)
		return struct{}{}, err
	})
	return err
}

// changed reports whether somebody else has made, changed or deleted the ledger meanwhile.
func changed(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}
