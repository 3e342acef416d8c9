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
	"github.com/docent-zk/docent/recipes/internal/pause"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// recordSuffix makes the path of the term record from that of the election. The record must not be
// a child of that node: Curator would take it for a candidate.
const recordSuffix = "-term"

// termRecord is a node in which each leader notes that it leads, and that it resigns. It shows the
// next leader whether the last one resigned, which the deletion of the candidate's node does not
// show.
type termRecord struct {
	path  string
	delay time.Duration
	log   *zap.Logger
}

// term is the content of the term record.
type term struct {
	Token    int64 `json:"token"`
	Resigned bool  `json:"resigned"`
}

// recordView is the term record as the leader with hold sees it. Only one goroutine at a time may
// use it.
type recordView struct {
	*termRecord
	hold    *ownership.Hold
	key     any // of the lock, for re-entry
	session *framework.Session
	known   bool // last and version are valid
	last    term
	version int32 // missing: there is no record
}

const missing = -1

// open notes the term that begins with hold. key is that of the hold's lock. If the last leader did
// not resign, open waits for the lock delay first. It returns nil if nothing was noted.
func (r *termRecord) open(ctx context.Context, hold *ownership.Hold, key any) (*recordView, error) {
	ctx = hold.Context(ctx)
	v := &recordView{termRecord: r, hold: hold, key: key, session: hold.Session()}
	err := v.note(ctx, term{Token: hold.Token()})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return v, err // the term may have been noted despite err
}

// resign ends the hold, then notes the resignation, then deletes the node. So no work under the
// hold follows the note, and the next leader reads the record only after it. resign returns what
// Release returns.
func (v *recordView) resign() error {
	node, held := ownership.Reenter(v.hold.Context(context.Background()), v.key)
	err := v.hold.Release()
	if !held {
		return err
	}
	if v.hold = node; err == nil {
		v.close()
	}
	return cmp.Or(err, node.Release())
}

// close notes that the term was resigned. If it fails, the next leader waits without need.
func (v *recordView) close() {
	ctx, cancel := context.WithTimeout(context.Background(), v.session.Timeout()/3)
	defer cancel()
	if err := v.note(ctx, term{v.hold.Token(), true}); err != nil {
		v.log.Warn("resignation not recorded: the next leader will wait for the lock delay",
			zap.String("path", v.hold.Path()), zap.Error(err))
	}
}

// read reads the record, unless it is known.
func (v *recordView) read(ctx context.Context) error {
	if v.known {
		return nil
	}
	data, err := queue.RetryInSession(ctx, v.session, func(ctx context.Context) ([]byte, error) {
		data, stat, err := v.session.Get(ctx, v.path)
		if err == nil {
			v.version = stat.Version
		}
		return data, err
	})
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		v.known, v.last, v.version = true, term{}, missing
		return nil
	}
	if err != nil {
		return err
	}
	var last term
	if err := json.Unmarshal(data, &last); err != nil || last.Token <= 0 {
		return fmt.Errorf("%s does not hold a term record: %.100q", v.path, data)
	}
	v.known, v.last = true, last
	return nil
}

// maxNotes bounds how often note repeats a read and a write because the record has changed in
// between. Only leaders should write it.
const maxNotes = 10

// note writes t to the record. If the record has changed since it was read, note begins again.
func (v *recordView) note(ctx context.Context, t term) (err error) {
	for range maxNotes {
		if err = v.attempt(ctx, t); !changed(err) {
			break
		}
	}
	return err
}

// attempt reads the record, waits if t begins and the last leader did not resign, and replaces what
// it read by t.
func (v *recordView) attempt(ctx context.Context, t term) error {
	if err := v.read(ctx); err != nil {
		return err
	}
	old := v.last
	if begins := !t.Resigned && old != t; begins && old.Token != 0 && !old.Resigned {
		v.log.Info("the last leader did not resign: waiting for the lock delay", zap.String("path", v.hold.Path()),
			zap.Stringer("last", logfield.Hex(old.Token)), zap.Duration("delay", v.delay))
		if err := pause.For(ctx, nil, v.delay); err != nil {
			return err
		}
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = queue.RetryInSession(ctx, v.session, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, v.write(ctx, old, t, data)
	})
	return err
}

// errRecordChanged means that the record has changed since attempt read it.
var errRecordChanged = errors.New("leader: term record changed")

// write replaces the term old by t, in one transaction that fails if the hold has ended.
func (v *recordView) write(ctx context.Context, old, t term, data []byte) error {
	if err := v.read(ctx); err != nil {
		return err
	}
	switch v.last {
	case t:
		return nil // an earlier attempt has been applied
	case old:
	default:
		return errRecordChanged
	}
	write := framework.SetOp(v.path, data, v.version)
	if v.version == missing {
		write = framework.CreateOp(v.path, data)
	}
	_, err := v.hold.Guard(ctx, write)
	if v.known = err == nil; v.known {
		v.last, v.version = t, v.version+1
	}
	return err
}

// changed reports whether err means that another client has created, changed or deleted the record
// meanwhile.
func changed(err error) bool {
	return errors.Is(err, errRecordChanged) ||
		errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}
