package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/retry"
)

// ops are the operations of a Client or a Session.
type ops struct {
	core       *core
	root       string   // chroot and namespace
	namespace  string   // the part of root below the chroot
	bound      *session // nil: the current session of each attempt
	ofSession  bool     // of a Session: they end with bound
	broken     error    // why the view cannot be used
	background bool     // a background task: repeat without limit
	noCaller   bool     // of a background task: no caller gets its error
}

// checkUsable returns an error for a zero value, an invalid view and a nil context.
func (o ops) checkUsable(ctx context.Context) error {
	switch {
	case o.core == nil:
		return notApplied(ErrZeroValue)
	case ctx == nil:
		return notApplied(ErrNilContext)
	case o.broken != nil:
		return notApplied(o.broken)
	}
	return nil
}

// key returns a comparable key for path. All views of a client return the same key for a node.
func (o ops) key(path string) any { return nodeKey{o.core, znode.Join(o.root, path)} }

type nodeKey struct {
	core *core
	path string
}

// Logger returns the client's logger, which is named "docent".
func (o ops) Logger() *zap.Logger {
	if o.core == nil {
		return zap.NewNop()
	}
	return o.core.cfg.log
}

// call is one use of an operation.
type call struct {
	name  string // for errors and logs
	path  string // given by the caller
	full  string // path on the servers
	class retryClass
	err   error // of an invalid argument
}

func (o ops) call(name, path string, class retryClass) call {
	full := znode.Join(o.root, path)
	return call{name, path, full, class, znode.ValidatePath(path)}.require(checkSize(len(full)))
}

// require adds the errors of further checks of arguments; the first one counts.
func (c call) require(errs ...error) call {
	for _, err := range errs {
		if c.err == nil {
			c.err = err
		}
	}
	return c
}

func (c call) failed(outcome Outcome, err error) error { return &Error{c.name, c.path, outcome, err} }

// closedAfter returns the error of an operation that was stopped by Close. err is the error of its
// last attempt, or nil.
func closedAfter(err error) error {
	switch {
	case err == nil:
		return ErrClosed
	case errors.Is(err, ErrClosed):
		return err
	}
	return errtext.Because(ErrClosed, err)
}

// bind binds the operations to the current session, unless they are bound already. If there is no
// session it waits for one as the operation c would.
func (o ops) bind(ctx context.Context, c call) (ops, error) {
	if o.core != nil && o.bound != nil {
		return o, nil
	}
	bound := o
	if o.checkUsable(ctx) == nil && ctx.Err() == nil {
		if s, _, _ := o.core.live(); s != nil {
			bound.bound = s
			return bound, nil
		}
	}
	c.class = repeatable
	_, err := run(ctx, o, c, func(_ context.Context, s *session) (nothing, error) {
		bound.bound = s
		return nothing{}, nil
	})
	return bound, err
}

// target returns the session for the next attempt.
func (o ops) target(ctx context.Context) (*session, error) {
	if o.bound != nil {
		return o.bound, nil
	}
	return o.core.session(ctx, o.core.cfg.connectTimeout)
}

// retryClass is the condition under which an operation may be repeated.
type retryClass int

const (
	// once: not after an unknown outcome.
	once retryClass = iota
	// repeatable: at any time, in any session.
	repeatable
	// afterSearch: after an unknown outcome, if the step first finds out whether it was applied.
	afterSearch
)

// run makes an operation. It checks the arguments, repeats step by the client's policy where that
// is allowed, and wraps the error. step makes one attempt in one session. No other code repeats
// attempts.
func run[T any](ctx context.Context, o ops, c call, step func(context.Context, *session) (T, error)) (T, error) {
	var none, out T
	if err := o.checkUsable(ctx); err != nil {
		return none, c.failed(NotApplied, err)
	}
	if c.err != nil {
		return none, c.failed(NotApplied, c.err)
	}
	outcome, attempts, last := NotApplied, 0, error(nil)
	waiting := &openContext{Context: ctx, core: o.core}
	defer waiting.stop()
	repeats := func(err error) bool { return o.repeats(err, c.class) }
	err := retry.Do(waiting, o.policy(), repeats, func(context.Context) error {
		s, err := o.target(ctx)
		if err == nil {
			out, err = step(ctx, s)
		}
		if err != nil {
			o.Logger().Debug("attempt failed", zap.String("op", c.name), zap.String("path", c.path),
				zap.Int("attempt", attempts), zap.Error(err))
		}
		attempts++
		if err != nil && OutcomeOf(err) == Unknown {
			outcome = Unknown
		}
		last = err
		return err
	})
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = closedAfter(last)
	}
	if err != nil {
		return none, c.failed(outcome, o.passing(ctx, outcome, err))
	}
	return out, nil
}

// passing marks the error of a Client's operation as transient if the session has ended, because
// the client opens another session. If a lost session has ended ctx, err may be about that one.
func (o ops) passing(ctx context.Context, outcome Outcome, err error) error {
	ended := errors.Is(context.Cause(ctx), ErrSessionLost)
	if o.ofSession || !errors.Is(err, ErrSessionLost) || errors.Is(err, ErrAuthFailed) || ended {
		return err
	}
	return transient(outcome, err)
}

func (o ops) policy() retry.Policy {
	if o.background {
		return backgroundPolicy
	}
	return o.core.cfg.retry
}

// repeats reports whether an operation that failed with err may be tried again.
func (o ops) repeats(err error, class retryClass) bool {
	if OutcomeOf(err) == Unknown && class == once {
		return false
	}
	if errors.Is(err, ErrSessionLost) {
		return o.bound == nil
	}
	if errors.Is(err, ErrAuthFailed) {
		return o.noCaller && o.bound == nil // until an operator has corrected it
	}
	return IsTransient(err)
}

// Get returns a node's data and Stat. If there is no such node, the error matches zk.ErrNoNode.
// Curator: getData.
func (o ops) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	r, err := o.read(ctx, "get", path, watchData)
	return r.data, r.stat, err
}

// Exists returns a node's Stat. If there is no such node, the error matches zk.ErrNoNode. Curator:
// checkExists, which returns null then.
func (o ops) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	r, err := o.read(ctx, "exists", path, watchExists)
	if err == nil && r.stat == nil {
		err = &Error{"exists", path, NotApplied, zk.ErrNoNode}
	}
	return r.stat, err
}

// Children returns the names of a node's children in no particular order, and the node's Stat. If
// there is no such node, the error matches zk.ErrNoNode. Curator: getChildren.
func (o ops) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	r, err := o.read(ctx, "list", path, watchChildren)
	return r.children, r.stat, err
}

func (o ops) read(ctx context.Context, name, path string, kind watchKind) (reading, error) {
	c := o.call(name, path, repeatable)
	return run(ctx, o, c, func(ctx context.Context, s *session) (reading, error) {
		return s.read(ctx, watchKey{c.full, kind})
	})
}

// GetW is Get with a Watch for the node's data and its deletion. If there is no such node, the
// error matches zk.ErrNoNode and there is no Watch.
func (o ops) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	r, err := o.readWatched(ctx, "get", path, watchData)
	return r.data, r.stat, r.watch, err
}

// ExistsW is Exists with a Watch for the node's creation, data and deletion. If there is no such
// node, it returns a nil Stat, a Watch and no error.
func (o ops) ExistsW(ctx context.Context, path string) (*zk.Stat, *Watch, error) {
	r, err := o.readWatched(ctx, "exists", path, watchExists)
	return r.stat, r.watch, err
}

// ChildrenW is Children with a Watch for added and deleted children and for the node's deletion.
func (o ops) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	r, err := o.readWatched(ctx, "list", path, watchChildren)
	return r.children, r.stat, r.watch, err
}

type watchedReading struct {
	reading
	watch *Watch
}

func (o ops) readWatched(ctx context.Context, name, path string, kind watchKind) (watchedReading, error) {
	c := o.call(name, path, repeatable)
	return run(ctx, o, c, func(ctx context.Context, s *session) (watchedReading, error) {
		r, w, err := s.readWatched(ctx, watchKey{c.full, kind})
		return watchedReading{r, w}, err
	})
}

// Set writes a node's data if its version is the given one; -1 stands for any. It returns the Stat
// after that. It fails with zk.ErrBadVersion if the version is another one, and with zk.ErrNoNode if
// there is no such node. A node has negative versions after 2^31 writes.
//
// Set is repeated after an unknown outcome only with a version. Then zk.ErrBadVersion with an Unknown
// outcome may mean that an earlier attempt was applied. Curator: setData.
func (o ops) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	c := o.call("set", path, versioned(version))
	c = c.require(checkSize(len(c.full) + len(data)))
	return run(ctx, o, c, func(ctx context.Context, s *session) (*zk.Stat, error) {
		return s.set(ctx, c.full, data, version)
	})
}

// Delete deletes a node if its version is the given one; -1 stands for any. It fails with
// zk.ErrBadVersion if the version is another one, with zk.ErrNotEmpty if the node has children, and
// with zk.ErrNoNode if there is no such node.
//
// Delete is repeated after an unknown outcome only with a version. Then zk.ErrNoNode with an Unknown
// outcome may mean that an earlier attempt was applied. Curator: delete.
func (o ops) Delete(ctx context.Context, path string, version int32) error {
	c := o.call("delete", path, versioned(version))
	_, err := run(ctx, o, c, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, s.delete(ctx, c.full, version)
	})
	return err
}

// anyVersion in a request stands for any version. All other numbers are versions: after 2^31 writes
// they are negative.
const anyVersion = -1

// versioned returns the class of an operation that, with a version, cannot be applied twice.
func versioned(version int32) retryClass {
	if version != anyVersion {
		return repeatable
	}
	return once
}

// Sync waits until the client's server has applied everything that was committed before. A later
// read in the same session shows at least what any client has been told before Sync was called. The
// node at path need not exist. Curator: sync.
//
// Sync is a transaction that changes nothing: the servers write it to their logs. ZooKeeper has a
// request named sync, which costs less and promises less. A ZooKeeper leader answers it to its own
// clients although it may not have applied yet what followers already show. A leader that was
// replaced and does not know it yet answers it too.
func (o ops) Sync(ctx context.Context, path string) error {
	c := o.call("sync", path, repeatable)
	_, err := run(ctx, o, c, func(ctx context.Context, s *session) (nothing, error) {
		return nothing{}, s.sync(ctx, c.full)
	})
	return err
}

func (s *session) set(ctx context.Context, full string, data []byte, version int32) (*zk.Stat, error) {
	return ask(ctx, s, nil, conn.SetData(full, data, version), conn.Reply.Stat)
}

func (s *session) delete(ctx context.Context, full string, version int32) error {
	_, err := ask(ctx, s, nil, conn.Delete(full, version), bare)
	return err
}

// sync makes a transaction that changes nothing. A refusal is applied in its order as well.
func (s *session) sync(ctx context.Context, full string) error {
	_, err := ask(ctx, s, nil, conn.Check(full), checked)
	if isNoNode(err) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// checked parses a reply to conn.Check.
func checked(r conn.Reply) (nothing, error) { return nothing{}, r.Checked() }

// bare parses a reply that has only an error.
func bare(r conn.Reply) (nothing, error) { return nothing{}, r.Err() }

type aclReading struct {
	acl  []zk.ACL
	stat *zk.Stat
}

// GetACL returns a node's ACL and Stat. If there is no such node, the error matches zk.ErrNoNode.
// Curator: getACL.
func (o ops) GetACL(ctx context.Context, path string) ([]zk.ACL, *zk.Stat, error) {
	c := o.call("get ACL", path, repeatable)
	r, err := run(ctx, o, c, func(ctx context.Context, s *session) (aclReading, error) {
		return ask(ctx, s, nil, conn.GetACL(c.full), func(reply conn.Reply) (r aclReading, err error) {
			r.acl, r.stat, err = reply.ACL()
			return r, err
		})
	})
	return r.acl, r.stat, err
}

// SetACL writes a node's ACL if its ACL version is the given one; -1 stands for any. It returns the
// Stat after that. Otherwise it is as Set. SetACL returns when the client's server has applied the change.
// Each server decides on reads by the new ACL from the moment at which it has applied the change. The leader
// decides on writes by the former ACL until it has applied the change, and all changes of the node and of
// its list of children that have followed meanwhile. So other clients may write for some milliseconds more.
// Curator: setACL.
func (o ops) SetACL(ctx context.Context, path string, acl []zk.ACL, version int32) (*zk.Stat, error) {
	c := o.call("set ACL", path, versioned(version))
	c = c.require(checkSize(len(c.full) + aclSize(acl)))
	return run(ctx, o, c, func(ctx context.Context, s *session) (*zk.Stat, error) {
		return ask(ctx, s, nil, conn.SetACL(c.full, acl, version), conn.Reply.Stat)
	})
}

// maxRequest is the default limit of servers, a little less than 1 MiB. They close the connection
// after a larger request.
const maxRequest = 0xfffff

// requestOverhead is room for headers and lengths.
const requestOverhead = 1 << 10

func checkSize(bytes int) error {
	if bytes+requestOverhead > maxRequest {
		return notApplied(fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, bytes, maxRequest-requestOverhead))
	}
	return nil
}

func aclSize(acl []zk.ACL) int {
	size := 0
	for _, a := range acl {
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	return size
}

// CheckPath returns an error if path is not a valid path of a node. The error matches
// ErrInvalidPath and names the path. CheckPath makes no request.
func CheckPath(path string) error { return znode.ValidatePath(path) }
