package group

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/kept"
	"github.com/docent-zk/docent/recipes/persistent"
)

var (
	// ErrIDInUse means that another member of the group has the id.
	ErrIDInUse = errors.New("group: another member has the id")
	// ErrClosed means that a Membership is closed.
	ErrClosed = errors.New("group: the membership is closed")
	// ErrPending means that Close has returned before the deletion of the node was confirmed. The
	// deletion continues in the background.
	ErrPending = errors.New("group: the deletion is not confirmed yet")
	// ErrNoPayload means that members with the names of kazoo have no payload.
	ErrNoPayload = errors.New("group: members of kazoo's Party have no payload")
)

// ofNode returns the errors of this package for those of the node.
var ofNode = kept.Errors{Closed: ErrClosed, Occupied: ErrIDInUse, Pending: ErrPending}

// Membership is the membership of this process in a group, from Join to Close. Safe for concurrent
// use. Curator: GroupMember.
type Membership struct {
	id    string
	kazoo bool
	node  *persistent.Node // nil in the zero value
	stop  context.CancelFunc
}

// Join makes this process a member of the group at path, and waits until it is one. ctx bounds only
// the wait: the membership lasts until Close, or until the client is closed. The id must not be
// empty and must be valid as the name of a node. payload is copied and may be empty.
//
// Join fails with ErrIDInUse if the id is in use (see WithWait), when ctx ends, with
// framework.ErrClosed when the client is closed, with framework.ErrTooLarge if the payload is too
// large for a request, with what the servers refuse, and for invalid arguments. If ctx ends while
// the id is in use, the error matches both. It does not fail because no server can be reached.
// After an error this process is not a member: a node that was created is deleted, in the
// background if necessary. It may join again at once. Curator: GroupMember.start, which adopts the
// node of another member with the same id.
func Join(
	ctx context.Context, c *framework.Client, path, id string, payload []byte, opts ...Option,
) (*Membership, error) {
	m, err := newMembership(ctx, c, path, id, payload, opts)
	if err != nil {
		return nil, fmt.Errorf("join %s as %q: %w", path, id, err)
	}
	kept, stop := context.WithCancel(context.Background())
	m.stop = stop
	if err = m.node.Start(kept); err == nil {
		err = m.node.WaitReady(ctx)
	}
	if err != nil {
		stop() // the node is deleted in the background
		return nil, fmt.Errorf("join %s as %q: %w", path, id, ofNode.Of(err))
	}
	return m, nil
}

func newMembership(
	ctx context.Context, c *framework.Client, path, id string, payload []byte, opts []Option,
) (*Membership, error) {
	cfg, err := newConfig(opts)
	if err == nil {
		err = checkCall(ctx, c, path)
	}
	if err != nil {
		return nil, err
	}
	name := id
	if cfg.kazoo {
		if len(payload) > 0 {
			return nil, ErrNoPayload
		}
		name, payload = kazooName(), []byte(id)
	}
	if id == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("id %q: want the name of a node", id)
	}
	node, err := persistent.New(c, child(path, name), payload, cfg.node...)
	if err != nil {
		return nil, err
	}
	return &Membership{id: id, kazoo: cfg.kazoo, node: node}, nil
}

// checkCall returns an error for a call that cannot succeed.
func checkCall(ctx context.Context, c *framework.Client, path string) error {
	switch {
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", path, ctxerr.Of(ctx))
	}
	if err := bridge.Of(c).Validate(); err != nil {
		return err
	}
	return framework.CheckPath(path)
}

func child(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }

// kazooMark is in the names of the nodes of a Party.
const kazooMark = "__party__"

func kazooName() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return fmt.Sprintf("%x%s", id, kazooMark)
}

// ID returns the id of the member.
func (m *Membership) ID() string { return m.id }

// check returns an error for a zero Membership.
func (m *Membership) check() error {
	if m.node == nil {
		return fmt.Errorf("%w: group.Membership", framework.ErrZeroValue)
	}
	return nil
}

// SetPayload sets the payload of the member. It copies payload and returns at once: the payload is
// written when there is a connection, and only the last one. WaitReady waits for that. It fails
// with ErrNoPayload for a member with the names of kazoo; with framework.ErrTooLarge if the payload
// is too large for a request, and then the payload stays as it was; with the error of Err if this
// process is not a member any more; and with framework.ErrZeroValue. Curator: setThisData.
func (m *Membership) SetPayload(payload []byte) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.kazoo {
		return ErrNoPayload
	}
	return ofNode.Of(m.node.SetData(payload))
}

// WaitReady waits until the node of the member is there with the last payload: see
// persistent.Node.WaitReady.
func (m *Membership) WaitReady(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	return ofNode.Of(m.node.WaitReady(ctx))
}

// Done returns a channel that is closed when this process is not a member any more and will not be
// one again. A lost session does not close it.
func (m *Membership) Done() <-chan struct{} {
	if m.node == nil {
		return (&persistent.Node{}).Done()
	}
	return m.node.Done()
}

// Err returns nil until Done is closed, and then the reason: ErrClosed; framework.ErrClosed;
// ErrIDInUse; or what the servers have answered.
func (m *Membership) Err() error {
	if err := m.check(); err != nil {
		return err
	}
	return ofNode.Of(m.node.Err())
}

// Close ends the membership. It waits until the node is deleted, for the session timeout at most.
// It returns nil if the servers have no node of this member any more, or delete it with its
// session, which is lost or closed with the client. It returns ErrPending if that is not confirmed
// yet: the deletion continues in the background until it is confirmed or the client is closed. It
// returns the servers' refusal, such as zk.ErrNoAuth or, if the node has children, zk.ErrNotEmpty:
// then the node stays until the session ends. It returns framework.ErrZeroValue for the zero value.
// Close returns the same when it is called again, once the deletion has ended. Curator: close.
func (m *Membership) Close() error {
	if err := m.check(); err != nil {
		return err
	}
	defer m.stop()
	return ofNode.Of(m.node.Close())
}
