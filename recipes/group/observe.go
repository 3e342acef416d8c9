package group

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/kind"
	"github.com/docent-zk/docent/recipes/internal/pause"
)

// Member is a member of a group as its node shows it.
type Member struct {
	ID      string
	Payload []byte // nil with the names of kazoo
	Node    string // the name of the node
	Token   int64  // the czxid of the node: larger than that of members which joined before
}

// Kind is the kind of a Change.
type Kind int

// The kinds of changes.
const (
	Added   Kind = iota + 1 // the member is new, or has joined again
	Changed                 // the member has another payload
	Removed                 // the member has left, or its session has expired
)

// String returns the kind in lower case.
func (k Kind) String() string { return kind.Text(int(k), int(Removed)) }

// Change is a difference between two states of a group.
type Change struct {
	Kind   Kind
	Member Member // after the change; with Removed as it was last read
}

// String returns the kind and the id of the member.
func (c Change) String() string { return c.Kind.String() + " " + c.Member.ID }

// Members returns the members of the group at path in the order of their ids. It is empty if there
// are none, or no such path. It reads the list and each node, so a member that joins or leaves
// meanwhile may be in the result or not. Other nodes below the path count as members.
//
// Members fails when ctx ends, also with framework.ErrNilContext; with framework.ErrClosed when the
// client is closed; with framework.ErrNotConnected, or another transient error, when the client's
// retry policy is exhausted; with zk.ErrNoAuth if the client may not read the path or a node; and
// for invalid arguments. Curator: getCurrentMembers, which always has the member itself.
func Members(ctx context.Context, c *framework.Client, path string, opts ...Option) ([]Member, error) {
	cfg, err := newReader(opts)
	if err == nil {
		err = checkCall(ctx, c, path)
	}
	if err != nil {
		return nil, fmt.Errorf("members of %s: %w", path, err)
	}
	names, _, err := c.Children(ctx, path)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, fmt.Errorf("members of %s: %w", path, err)
	}
	var members []Member
	for _, name := range cfg.ofMembers(names) {
		data, stat, err := c.Get(ctx, child(path, name))
		if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			continue // it has just left
		}
		if err != nil {
			return nil, fmt.Errorf("members of %s: %w", path, err)
		}
		members = append(members, cfg.member(name, data, stat))
	}
	slices.SortFunc(members, compare)
	return members, nil
}

func compare(a, b Member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Node, b.Node)) }

// ofMembers returns the names that nodes of members can have, sorted.
func (c config) ofMembers(names []string) []string {
	if c.kazoo {
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, kazooMark) })
	}
	slices.Sort(names)
	return names
}

func (c config) member(name string, data []byte, stat *zk.Stat) Member {
	if c.kazoo {
		return Member{ID: string(data), Node: name, Token: stat.Czxid}
	}
	return Member{ID: name, Payload: data, Node: name, Token: stat.Czxid}
}

// Observe returns a sequence of the changes of the group at path. It begins with an Added for each
// present member. Each difference between what was known and what is read is there once, in the
// order in which it is read. A member that has left and joined again between two reads is there
// with both changes. Of several quick changes of a payload only the last may be there. Observe does
// not need a membership.
//
//	for change, err := range group.Observe(ctx, client, "/workers") {
//
// An error means that the group is not known any more. If no server can be reached, it comes when
// the session is lost and the client's retry policy is exhausted, by default after 15 to 20 seconds
// more. After an error of the connection the sequence continues, with the differences to what was
// known before. It ends after framework.ErrClosed, after other refusals of the servers, and after
// an error for invalid arguments. When ctx ends it ends without an error.
//
// It costs a watch on the path and one on each member's node, for any number of observers of one
// client. A change costs a list or a read of one node. Curator: a PathChildrenCache on the path.
func Observe(ctx context.Context, c *framework.Client, path string, opts ...Option) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if ctx != nil && ctx.Err() != nil {
			return
		}
		cfg, err := newReader(opts)
		if err == nil {
			err = checkCall(ctx, c, path)
		}
		if err != nil {
			yield(Change{}, fmt.Errorf("observe %s: %w", path, err))
			return
		}
		o := &observer{
			client: c, path: path, cfg: cfg,
			yield: yield, known: map[string]*seen{}, fired: make(chan struct{}, 1),
		}
		o.run(ctx)
	}
}

// observer follows a group for one loop over Observe.
type observer struct {
	client *framework.Client
	path   string
	cfg    config
	yield  func(Change, error) bool

	known map[string]*seen // by the name of the node
	names []string         // as last listed
	list  *followed        // on the list; nil: not listed
	fired chan struct{}    // of capacity 1: one of the watches has fired
}

// seen is a member as it was last read.
type seen struct {
	Member
	watch *followed
}

// followed is a watch that makes run go on when it fires, until stop is called. The watch is the
// client's, which has one for all observers.
type followed struct {
	*framework.Watch
	stop func()
}

// errStopped means that the loop over the sequence has ended.
var errStopped = errors.New("group: stopped")

func (o *observer) run(ctx context.Context) {
	defer o.unfollow()
	failures := 0
	for {
		err := o.read(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, errStopped):
			return
		case err != nil:
			if !o.yield(Change{}, fmt.Errorf("observe %s: %w", o.path, err)) || !framework.IsTransient(err) {
				return
			}
			_ = pause.For(ctx, nil, pause.After(failures)) // ctx is looked at after the next read
			failures++
			continue
		}
		failures = 0
		select {
		case <-o.fired:
		case <-ctx.Done():
			return
		}
	}
}

// read reads what may have changed, and yields the differences.
func (o *observer) read(ctx context.Context) error {
	if o.list == nil || o.list.Event() != 0 {
		if err := o.readNames(ctx); err != nil {
			return err
		}
	}
	for _, name := range o.names {
		if s := o.known[name]; s != nil && s.watch.Event() == 0 {
			continue
		}
		if err := o.readMember(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// readNames lists the group, and yields the members that have left.
func (o *observer) readNames(ctx context.Context) error {
	names, watch, err := o.children(ctx)
	if err != nil {
		return err
	}
	o.names, o.list = o.cfg.ofMembers(names), o.follow(watch)
	var left []string
	for name := range o.known {
		if _, there := slices.BinarySearch(o.names, name); !there {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		if err := o.left(name); err != nil {
			return err
		}
	}
	return nil
}

// children lists the group with a watch. A group that does not exist is empty.
func (o *observer) children(ctx context.Context) ([]string, *framework.Watch, error) {
	for {
		names, _, watch, err := o.client.ChildrenW(ctx, o.path)
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return names, watch, err
		}
		stat, watch, err := o.client.ExistsW(ctx, o.path)
		if err != nil || stat == nil {
			return nil, watch, err
		} // otherwise it has just been created
	}
}

// follow makes run go on when the watch fires.
func (o *observer) follow(watch *framework.Watch) *followed {
	return &followed{watch, bridge.OfWatch(watch).Then(func() {
		select {
		case o.fired <- struct{}{}:
		default:
		}
	})}
}

// unfollow ends what follow has begun.
func (o *observer) unfollow() {
	if o.list != nil {
		o.list.stop()
	}
	for _, s := range o.known {
		s.watch.stop()
	}
}

func (o *observer) left(name string) error {
	s := o.known[name]
	s.watch.stop()
	delete(o.known, name)
	return o.tell(Removed, s.Member)
}

func (o *observer) tell(k Kind, m Member) error {
	if !o.yield(Change{k, m}, nil) {
		return errStopped
	}
	return nil
}

// readMember reads a member, and yields what has changed.
func (o *observer) readMember(ctx context.Context, name string) error {
	data, stat, watch, err := o.client.GetW(ctx, child(o.path, name))
	before := o.known[name]
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		if before == nil {
			return nil // the list will show it
		}
		return o.left(name)
	}
	if err != nil {
		return err
	}
	now := &seen{o.cfg.member(name, data, stat), o.follow(watch)}
	if before != nil && before.Token != now.Token {
		if err := o.left(name); err != nil {
			now.watch.stop()
			return err
		}
		before = nil
	}
	o.known[name] = now
	switch {
	case before == nil:
		return o.tell(Added, now.Member)
	case !bytes.Equal(before.Payload, now.Payload) || before.ID != now.ID:
		return o.tell(Changed, now.Member)
	}
	return nil
}
