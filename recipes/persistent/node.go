package persistent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/signal"
)

// Node keeps a node on the servers, from Start to Close. A Node is used once. Safe for concurrent
// use. Curator: PersistentNode, PersistentTtlNode.
type Node struct {
	client *framework.Client // nil in the zero value
	path   string
	cfg    config
	key    any
	log    *zap.Logger
	room   int // for data, in bytes

	wake    chan struct{} // of capacity 1: there is other data to write
	done    chan struct{} // closed when the node is not kept any more
	removed chan struct{} // closed when the node is deleted, or its deletion was given up
	ended   chan struct{} // closed when the goroutine has ended, which then does not use keeper any more
	keeper  *keeper

	running context.Context    // ends when the Node is closed; set before the Node takes its place
	owned   context.Context    // ends when another Node takes the place
	yield   context.CancelFunc // ends owned

	mu      sync.Mutex
	stop    context.CancelFunc // nil before Start
	closed  bool
	data    []byte
	writes  int // the number of calls of SetData
	view    view
	timeout time.Duration // of the last session
	err     error         // why the node is not kept any more
	left    error         // why the node could not be deleted
	changed chan struct{} // closed and replaced when view or err changes
}

// view is what was last read of the node. The zero view means that the node is not there.
type view struct {
	at      string
	session *framework.Session
	number  int  // the value of Node.writes whose data the node has; -1: none
	blocked bool // a node of another owner is at the path
}

// New returns a Node for path with data, which it copies. New makes no request. It returns an error
// for a nil or unusable client, an invalid path, "/", options that exclude each other, and
// framework.ErrTooLarge for data that is too large for a request. With WithSequence the path may
// end in a slash.
func New(c *framework.Client, path string, data []byte, opts ...Option) (*Node, error) {
	cfg, err := newConfig(opts)
	if err == nil {
		err = checkPath(c, path, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	if cfg.protected && !cfg.sequential {
		path = protect(path)
	}
	room, err := bridge.Of(c).Room(cfg.requests(path)...)
	if err == nil {
		err = checkRoom(data, room)
	}
	if err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	owned, yield := context.WithCancel(context.Background())
	n := &Node{
		client:  c,
		path:    path,
		cfg:     cfg,
		key:     bridge.Of(c).Key(path),
		log:     c.Logger().Named("persistent").With(zap.String("path", path)),
		room:    room,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		removed: make(chan struct{}),
		ended:   make(chan struct{}),
		owned:   owned,
		yield:   yield,
		timeout: defaultCloseTimeout,
		data:    append([]byte{}, data...),
		changed: make(chan struct{}),
	}
	n.keeper = newKeeper(n)
	return n, nil
}

// protect puts a GUID in front of the name of path.
func protect(path string) string {
	var id [16]byte
	_, _ = rand.Read(id[:])                         // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // a random UUID
	name := strings.LastIndexByte(path, '/') + 1
	return fmt.Sprintf("%s_c_%x-%x-%x-%x-%x-%s", path[:name], id[:4], id[4:6], id[6:8], id[8:10], id[10:], path[name:])
}

func checkPath(c *framework.Client, path string, cfg config) error {
	if err := bridge.Of(c).Validate(); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: the node needs a name", framework.ErrInvalidPath, path)
	}
	if cfg.sequential && len(path) > 1 && path[len(path)-1] == '/' {
		path += "0"
	}
	return framework.CheckPath(path)
}

// checkRoom returns an error if there is no room for data.
func checkRoom(data []byte, room int) error {
	if len(data) > room {
		return fmt.Errorf("%w: %d bytes of data, the limit at this path is %d", framework.ErrTooLarge, len(data), room)
	}
	return nil
}

func (n *Node) made() bool { return n.client != nil }

// check returns an error for a zero Node, and for a context that is nil or has ended.
func (n *Node) check(ctx context.Context) error {
	switch {
	case !n.made():
		return fmt.Errorf("%w: persistent.Node", framework.ErrZeroValue)
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", n.path, ctxerr.Of(ctx))
	}
	return nil
}

// Start keeps the node in the background until ctx ends or Close is called. It returns at once,
// also when no server can be reached. It fails with ErrStarted if it was called before, with
// ErrClosed if the Node is closed, with ErrOccupied if another Node of the same client has the
// path and is not closed, with framework.ErrClosed if the client is closed, and if ctx is nil or
// has ended. After an error nothing runs, and Close is not needed. Curator: start.
func (n *Node) Start(ctx context.Context) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return fmt.Errorf("start %s: %w", n.path, ErrClosed)
	case n.stop != nil:
		return fmt.Errorf("start %s: %w", n.path, ErrStarted)
	}
	ctx, stop := context.WithCancel(ctx)
	n.running = ctx
	before, err := n.takePlace()
	if err != nil {
		stop()
		return fmt.Errorf("start %s: %w: that of another Node of this client", n.path, err)
	}
	if !bridge.Of(n.client).Go(func() { n.keeper.run(ctx, before) }) {
		stop()
		n.leavePlace()
		return fmt.Errorf("start %s: %w", n.path, framework.ErrClosed)
	}
	n.stop = stop
	return nil
}

// SetData sets the data of the node. It copies data and returns at once: the data is written when
// there is a connection, and if SetData is called again before, only the last data is written.
// WaitReady waits for that. It can be called before Start. It returns why the node is not kept any
// more if so, as Err does. It returns framework.ErrTooLarge for data that is too large for a
// request: then the data stays as it was. Curator: setData.
func (n *Node) SetData(data []byte) error {
	if !n.made() {
		return fmt.Errorf("%w: persistent.Node", framework.ErrZeroValue)
	}
	if err := checkRoom(data, n.room); err != nil {
		return fmt.Errorf("set %s: %w", n.path, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.err != nil {
		return fmt.Errorf("set %s: %w", n.path, n.endLocked())
	}
	n.data = append([]byte{}, data...)
	n.writes++
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return nil
}

// wanted returns the data that the node should have, and its number.
func (n *Node) wanted() ([]byte, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data, n.writes
}

// WaitReady waits until the node is there with the data of the last SetData. It fails
//
//   - when ctx ends, and if it has ended. If a node of another program is at the path, the error
//     also matches ErrOccupied;
//   - with ErrNotStarted before Start;
//   - with the error of Err when the node is not kept any more.
//
// WaitReady does not fail because no server can be reached. It does not tell that the node was
// created again: a cache of the path does, see package cache. Curator: waitForInitialCreate, which
// also returns for the node of a lost session.
func (n *Node) WaitReady(ctx context.Context) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	for {
		there, blocked, changed, err := n.awaited()
		if there || err != nil {
			return err
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		}
		if blocked {
			return fmt.Errorf("wait for %s: %w: %w", n.path, ErrOccupied, ctxerr.Of(ctx))
		}
		return fmt.Errorf("wait for %s: %w", n.path, ctxerr.Of(ctx))
	}
}

// awaited reports whether the node is there with the data of the last SetData, and whether a node
// of another owner is. If the first is false, it returns an error, or a channel that is closed when
// that may have changed.
func (n *Node) awaited() (there, blocked bool, changed <-chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed || n.err != nil:
		return false, false, nil, fmt.Errorf("wait for %s: %w", n.path, n.endLocked())
	case n.stop == nil:
		return false, false, nil, fmt.Errorf("wait for %s: %w", n.path, ErrNotStarted)
	}
	return n.atLocked() != "" && n.view.number == n.writes, n.view.blocked, n.changed, nil
}

// atLocked returns the path of the node, or "" if it is not there as far as is known. An ephemeral
// node of a lost session is as good as deleted.
func (n *Node) atLocked() string {
	if n.view.at == "" || n.cfg.ephemeral() && n.view.session.Err() != nil {
		return ""
	}
	return n.view.at
}

// Path returns the path of the node while it is there, and "" while it is not. WithProtection and
// WithSequence change the name that New was called with. Curator: getActualPath.
func (n *Node) Path() string {
	if !n.made() {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.atLocked()
}

// Done returns a channel that is closed when the node is not kept any more: after Close, at the end
// of the context of Start, when the client is closed, and after an error that no retry can mend. It
// is closed in the zero value.
func (n *Node) Done() <-chan struct{} {
	if !n.made() {
		return signal.Closed
	}
	return n.done
}

// Err returns nil until Done is closed, and then the reason: ErrClosed, joined with the error
// of the context of Start if that has ended; framework.ErrClosed; ErrOccupied; or what the servers
// have answered. It returns framework.ErrZeroValue for the zero value.
func (n *Node) Err() error {
	if !n.made() {
		return fmt.Errorf("%w: persistent.Node", framework.ErrZeroValue)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// endLocked returns the error of calls after the end.
func (n *Node) endLocked() error {
	if n.err != nil {
		return n.err
	}
	return ErrClosed
}

// Close deletes the node and waits until it is deleted, for the session timeout at most. It returns
// nil if the servers have no node of this Node any more, or delete it because the session is lost.
// It returns ErrPending if that is not confirmed yet: the deletion continues in the background
// until it is confirmed or the client is closed. If the client starts another Node at the path
// meanwhile, the node belongs to that one, which keeps or deletes it, and Close of this one returns
// nil. Close returns the servers' refusal, such as zk.ErrNoAuth or, if the node has children,
// zk.ErrNotEmpty: then the node stays. If the client is closed, it returns framework.ErrClosed if a
// node may stay, which an ephemeral node does not. Close returns the same when it is called again,
// once the deletion has ended. A Node cannot be started again: make another one. Curator: close.
func (n *Node) Close() error {
	if !n.made() {
		return fmt.Errorf("%w: persistent.Node", framework.ErrZeroValue)
	}
	if !n.close() {
		return nil
	}
	n.mu.Lock()
	timer := time.NewTimer(n.timeout)
	n.mu.Unlock()
	defer timer.Stop()
	select {
	case <-n.removed:
	case <-timer.C:
		return fmt.Errorf("close %s: %w", n.path, ErrPending)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left != nil {
		return fmt.Errorf("close %s: %w", n.path, n.left)
	}
	return nil
}

// close notes that the Node is closed, and reports whether it was started.
func (n *Node) close() (started bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop != nil {
		n.closed = true
		n.stop()
		return true
	}
	if !n.closed {
		n.closed, n.err = true, ErrClosed
		close(n.done)
	}
	return false
}

// defaultCloseTimeout bounds Close if there has been no session.
const defaultCloseTimeout = 10 * time.Second

// note notes the timeout of a session.
func (n *Node) note(session *framework.Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.timeout = session.Timeout()
}

// show notes what was read of the node, and wakes WaitReady.
func (n *Node) show(v view) {
	n.update(func() { n.view = v })
}

func (n *Node) update(changeLocked func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changeLocked()
	close(n.changed)
	n.changed = make(chan struct{})
}

// closedBy returns the reason of an end by Close, or by ctx, which is that of Start.
func (n *Node) closedBy(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, ctxerr.Of(ctx))
}

// finish notes that the node is not kept any more, because of reason.
func (n *Node) finish(reason error) {
	n.update(func() {
		n.view, n.err = view{}, reason
		n.stop()
		close(n.done)
	})
	if !errors.Is(reason, ErrClosed) && !errors.Is(reason, framework.ErrClosed) {
		n.log.Warn("the node is not kept any more", zap.Error(reason))
	}
}
