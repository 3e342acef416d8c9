package semaphore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

const (
	// maxPermits is the largest number that a limit's node can hold.
	maxPermits = math.MaxInt32
	// maxAtOnce is a bound of the permits of one acquire. Fewer already exceed one transaction.
	maxAtOnce = 1 << 14
)

// limit is the number of permits, as its node holds it: Curator's SharedCount, four bytes, big
// endian. A fixed limit is noted in the semaphore's own node, so that processes with different
// limits find out. Safe for concurrent use.
type limit struct {
	node    string
	permits int  // as given to New
	shared  bool // the node sets the number, otherwise New does

	mu    sync.Mutex
	known *reading // nil: not known
}

// reading is a limit as it was read.
type reading struct {
	permits int
	noted   bool  // the node holds the limit
	version int32 // of the node. It wraps around: after 2^31 writes it is negative
	leases  int64 // the czxid of leases that are known to be below the node that was read; 0: not known
}

// check returns the operation by which a transaction fails if the limit has changed, or none if the
// node holds no limit.
func (l *limit) check(r reading) []framework.Op {
	if !r.noted {
		return nil
	}
	return []framework.Op{framework.CheckOp(l.node, r.version)}
}

func newLimit(path string, permits int, shared *string) (*limit, error) {
	if shared == nil {
		return &limit{node: path, permits: permits}, nil
	}
	node := *shared
	if err := framework.CheckPath(node); err != nil {
		return nil, fmt.Errorf("WithSharedLimit: %w", err)
	}
	within := func(node, dir string) bool { return strings.HasPrefix(node+"/", dir+"/") }
	switch {
	case node == "/", within(node, path+"/locks"), within(node, path+"/leases"):
		return nil, fmt.Errorf("WithSharedLimit: %w %q: it needs a node of its own", framework.ErrInvalidPath, node)
	case within(path, node):
		return nil, fmt.Errorf("WithSharedLimit: %w %q: a container at or above the semaphore's path %q is deleted, "+
			"with the limit, when it is empty: use a node beside it, such as %q",
			framework.ErrInvalidPath, node, path, path+"-limit")
	}
	return &limit{node: node, permits: permits, shared: true}, nil
}

// admits returns an error if an acquire of n permits can never succeed.
func (l *limit) admits(n int) error {
	if err := checkPermits(n); err != nil {
		return err
	}
	if n > maxAtOnce {
		return fmt.Errorf("%w: %d permits at once, more than %d", framework.ErrTooLarge, n, maxAtOnce)
	}
	if !l.shared && n > l.permits {
		return fmt.Errorf("%w: %d permits, the limit is %d", ErrLimit, n, l.permits)
	}
	return nil
}

func (l *limit) cached() (reading, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		return reading{}, false
	}
	return *l.known, true
}

func (l *limit) remember(r reading) reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = &r
	return r
}

// forget drops the cached limit, so that the next read asks the servers.
func (l *limit) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// errChanged means that the limit's node has changed and must be read again.
var errChanged = errors.New("semaphore: the limit has changed")

// anyVersion, in a request, is any version of a node. So no request can check this one.
const anyVersion = -1

// confirm returns enqueue.ErrRetry unless the limit was r in a transaction that has checked it. The
// check is not enough for a version that no request can check. Neither is it for a fixed limit: the
// servers delete an idle semaphore, and its next node begins with the same versions. As long as
// leases is the same node, the node above it is the same.
func (l *limit) confirm(ctx context.Context, s *framework.Session, r reading, leases *zk.Stat) error {
	switch {
	case !r.noted:
		return nil
	case r.version == anyVersion:
	case l.shared, leases != nil && leases.Czxid == r.leases:
		return nil
	}
	now, err := queue.RetryInSession(ctx, s, func(ctx context.Context) (reading, error) {
		data, stat, err := s.Get(ctx, l.node)
		if err != nil {
			return reading{}, err
		}
		n, ok := decode(data)
		return reading{permits: n, noted: ok, version: stat.Version}, nil
	})
	if err != nil {
		return err
	}
	if !now.noted || now.permits != r.permits || now.version != r.version {
		l.forget()
		return enqueue.ErrRetry
	}
	if leases != nil && !l.shared {
		r.leases = leases.Czxid
		l.remember(r)
	}
	return nil
}

// read returns the cached limit, or else reads the node.
func (l *limit) read(ctx context.Context, s *framework.Session, sem *Semaphore) (reading, error) {
	if r, ok := l.cached(); ok {
		return r, nil
	}
	for {
		data, stat, err := s.Get(ctx, l.node)
		r, err := l.resolve(ctx, s, data, stat, err, sem)
		if !errors.Is(err, errChanged) {
			return r, err
		}
	}
}

// watch reads the node and sets a watch on it. The watch is nil if the limit is fixed.
func (l *limit) watch(ctx context.Context, s *framework.Session, sem *Semaphore) (reading, *framework.Watch, error) {
	if !l.shared {
		r, err := l.read(ctx, s, sem)
		return r, nil, err
	}
	for {
		data, stat, w, err := s.GetW(ctx, l.node)
		r, err := l.resolve(ctx, s, data, stat, err, sem)
		if !errors.Is(err, errChanged) {
			return r, w, err
		}
	}
}

// resolve returns the limit that data, stat and err of a read show. A node without a limit gets the
// number given to New. So does the node of a fixed limit with another number, if the semaphore is
// not in use. It returns errChanged if the node must be read again.
func (l *limit) resolve(
	ctx context.Context, s *framework.Session, data []byte, stat *zk.Stat, err error, sem *Semaphore,
) (reading, error) {
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return reading{}, l.create(ctx, s)
	case ctxerr.Answered(ctx, err, zk.ErrNoAuth) && !l.shared:
		return reading{permits: l.permits}, nil
	case err != nil:
		return reading{}, err
	case len(data) == 0:
		return l.write(ctx, s, stat.Version)
	}
	n, ok := decode(data)
	switch {
	case l.shared && (!ok || n < 0):
		return reading{}, fmt.Errorf("%w: %s holds %q, not a number of permits in four bytes", ErrLimit, l.node, data)
	case l.shared || ok && n == l.permits:
		return l.remember(reading{permits: n, noted: true, version: stat.Version}), nil
	case !ok:
		return reading{permits: l.permits}, nil // data of other programs is not overwritten
	}
	switch inUse, _, err := sem.used(ctx, s); {
	case err != nil:
		return reading{}, err
	case inUse:
		return reading{}, fmt.Errorf("%w: %s: %d here, the clients that use it have %d", ErrLimit, l.node, l.permits, n)
	}
	return l.replace(ctx, s, data, sem)
}

// replace notes the limit instead of another one, unless the semaphore is used. A version cannot
// tell a node from the next one of its name, so meanwhile a node among the leases keeps all of them
// from being deleted.
func (l *limit) replace(ctx context.Context, s *framework.Session, old []byte, sem *Semaphore) (reading, error) {
	pin, err := sem.pin(ctx, s)
	if err != nil {
		return reading{}, err
	}
	defer enqueue.DeleteNodes(ctx, s, pin)
	data, stat, err := s.Get(ctx, l.node)
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrNoNode), err == nil && !bytes.Equal(data, old):
		return reading{}, errChanged
	case err != nil:
		return reading{}, err
	}
	inUse, still, err := sem.used(ctx, s)
	switch {
	case err != nil:
		return reading{}, err
	case inUse:
		return reading{}, errChanged
	}
	return l.write(ctx, s, stat.Version, still)
}

// create creates the node. It returns errChanged if the node must then be read.
func (l *limit) create(ctx context.Context, s *framework.Session) error {
	if !l.shared {
		return cmp.Or(s.CreateContainers(ctx, l.node), errChanged)
	}
	_, err := s.Create(ctx, l.node, encode(l.permits), framework.Parents())
	switch {
	case err == nil, ctxerr.Answered(ctx, err, zk.ErrNodeExists),
		framework.IsTransient(err) && framework.OutcomeOf(err) == framework.Unknown:
		return errChanged
	}
	return err
}

// write notes the limit in the node if the node has this version and the checks in only succeed.
func (l *limit) write(
	ctx context.Context, s *framework.Session, version int32, only ...framework.Op,
) (reading, error) {
	done, err := s.Multi(ctx, append(only, framework.SetOp(l.node, encode(l.permits), version))...)
	switch {
	case ctxerr.Answered(ctx, err, zk.ErrBadVersion), ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return reading{}, errChanged
	case ctxerr.Answered(ctx, err, zk.ErrNoAuth) && !l.shared:
		return reading{permits: l.permits}, nil
	case err != nil:
		return reading{}, err
	}
	return l.remember(reading{permits: l.permits, noted: true, version: done[len(done)-1].Stat.Version}), nil
}

// set changes a shared limit.
func (l *limit) set(ctx context.Context, c *framework.Client, permits int) error {
	switch {
	case !l.shared:
		return fmt.Errorf("%w: the limit is fixed to %d, see WithSharedLimit", ErrLimit, l.permits)
	case permits < 0 || permits > maxPermits:
		return fmt.Errorf("%w: the limit %d must be between 0 and %d", ErrLimit, permits, maxPermits)
	}
	for {
		_, err := c.Set(ctx, l.node, encode(permits), -1)
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return err
		}
		_, err = c.Create(ctx, l.node, encode(permits), framework.Parents())
		if !ctxerr.Answered(ctx, err, zk.ErrNodeExists) {
			return err
		}
	}
}

func encode(permits int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(permits)) }

func decode(data []byte) (permits int, ok bool) {
	if len(data) != 4 {
		return 0, false
	}
	return int(int32(binary.BigEndian.Uint32(data))), true
}
