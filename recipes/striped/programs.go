package striped

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// ErrStripes means that programs run with another number of stripes, so that holds would not exclude
// each other. The error names both numbers, and a node of such a program. To change the number, see
// WithPrevious. The node of a program that has crashed is deleted when its session expires.
var ErrStripes = errors.New("striped: programs with another number of stripes are running")

// programs is the registered sessions of programs, each an ephemeral node that names the numbers of
// stripes. Two programs that share a number exclude each other. A session is registered while it has
// a node, and while no node with a smaller sequence number shares no number with it. So of two such
// nodes one does not count: the younger one, because its list shows the older one.
type programs struct {
	client  *framework.Client
	dir     string
	key     programsKey
	numbers []int
	node    enqueue.Node
}

// programsKey identifies the registration of a session.
type programsKey struct {
	dir  any
	name string
}

func newPrograms(c *framework.Client, dir string, numbers []int, identity []byte) *programs {
	name := nodeKind + "-"
	for _, n := range numbers {
		name += strconv.Itoa(n) + "-"
	}
	return &programs{c, dir, programsKey{bridge.Of(c).Key(dir), name}, numbers, enqueue.Node{
		Dir: dir, RequestedName: name, Data: identity, Options: enqueue.LockNodeOptions(),
	}}
}

// registrations are those of one session.
type registrations struct {
	mu  sync.Mutex // nothing waits while it is held
	all map[programsKey]*registration
}

// registration is one node of a session.
type registration struct {
	turn chan struct{} // has room for one: the goroutine that registers

	// Used by the goroutine that registers.
	name string // of the node; "": none

	mu    sync.Mutex
	watch *framework.Watch // for node; nil: it is not known to exist
}

// known reports whether the session is registered.
func (r *registration) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch == nil {
		return false
	}
	select {
	case <-r.watch.Fired():
		return false // it was deleted, or the session has reconnected
	default:
		return true
	}
}

func (r *registration) set(w *framework.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch = w
}

// of returns the registration of a session.
func (p *programs) of(s *framework.Session) *registration {
	all := bridge.Local[registrations](bridge.OfSession(s))
	all.mu.Lock()
	defer all.mu.Unlock()
	r, ok := all.all[p.key]
	if !ok {
		r = &registration{turn: make(chan struct{}, 1)}
		if all.all == nil {
			all.all = map[programsKey]*registration{}
		}
		all.all[p.key] = r
	}
	return r
}

// register registers a session, for as long as it lasts.
func (p *programs) register(ctx context.Context, s *framework.Session) error {
	r := p.of(s)
	if r.known() {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	defer func() { <-r.turn }()
	for !r.known() {
		if err := p.attempt(ctx, s, r); err != nil {
			return err
		}
	}
	return nil
}

// attempt creates a node, unless there is one, and watches it.
func (p *programs) attempt(ctx context.Context, s *framework.Session, r *registration) (err error) {
	if r.name == "" {
		node, err := p.create(ctx, s)
		if err != nil {
			return err
		}
		r.name = path.Base(node)
	}
	_, _, watch, err := s.GetW(ctx, p.dir+"/"+r.name) // in the namespace of this client
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		r.name = "" // deleted by another client
		return nil
	}
	if err != nil {
		return ctxerr.With(ctx, err)
	}
	r.set(watch)
	return nil
}

// create creates a node, which counts.
func (p *programs) create(ctx context.Context, s *framework.Session) (node string, err error) {
	if err := p.compare(ctx, s, func(locknode.Node) bool { return true }); err != nil {
		return "", err
	}
	created, err := enqueue.Create{Nodes: []enqueue.Node{p.node}}.Do(ctx, s)
	if err != nil {
		return "", ctxerr.With(ctx, err)
	}
	defer func() {
		if node == "" {
			enqueue.DeleteNodes(ctx, s, created.Nodes...)
		}
	}()
	own, ok := locknode.Parse(path.Base(created.Nodes[0]), []string{p.node.RequestedName})
	if !ok || own.AtCounterEnd() {
		return "", fmt.Errorf("the directory's counter of sequence numbers is at its end "+
			"(delete it while no program runs): %s", created.Nodes[0])
	}
	if err := p.compare(ctx, s, func(n locknode.Node) bool { return locknode.Before(n.Seq, own.Seq) }); err != nil {
		return "", err
	}
	return created.Nodes[0], nil
}

// compare returns ErrStripes if one of the nodes that count shares no number with this program.
func (p *programs) compare(ctx context.Context, s *framework.Session, counts func(locknode.Node) bool) error {
	children, _, err := s.Children(ctx, p.dir)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return ctxerr.With(ctx, err)
	}
	for _, name := range children {
		other, numbers, ok := parse(name)
		if ok && counts(other) && !slices.ContainsFunc(numbers, p.has) {
			from, to := numbers[0], p.numbers[0]
			return fmt.Errorf("%w: %s here, %s in %s/%s; to change %d to %d, run all programs with %d and "+
				"WithPrevious(%d) first", ErrStripes, text(p.numbers), text(numbers), p.dir, name, from, to, to, from)
		}
	}
	return nil
}

func (p *programs) has(n int) bool { return slices.Contains(p.numbers, n) }

// nodeKind is in the names of the nodes, before the numbers of stripes and the sequence number. A
// GUID does not contain it.
const nodeKind = "stripes"

// parse returns the numbers in the name of a node.
func parse(name string) (n locknode.Node, numbers []int, ok bool) {
	_, rest, ok := strings.Cut(name, nodeKind+"-")
	if !ok {
		return n, nil, false
	}
	parts := strings.Split(rest, "-")
	for _, part := range parts[:len(parts)-1] {
		number, err := strconv.Atoi(part)
		if err != nil {
			return n, nil, false
		}
		numbers = append(numbers, number)
	}
	n, ok = locknode.Parse(name, []string{strings.Join(parts[:len(parts)-1], "-") + "-"})
	return n, numbers, ok && len(numbers) > 0
}

// text returns numbers of stripes for errors.
func text(numbers []int) string {
	if len(numbers) == 2 {
		return fmt.Sprintf("%d (with previous %d)", numbers[0], numbers[1])
	}
	return strconv.Itoa(numbers[0])
}
