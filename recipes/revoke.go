package recipes

import (
	"context"
	"fmt"
	"regexp"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/retry"
)

// RevokeMessage is the data by which a client asks for the release of a lock node. It is Curator's,
// to the byte.
const RevokeMessage = ownership.RevokeMessage

// revocable matches the names of nodes that may be asked: those of locks, permits and candidates of
// an Election, of docent, Curator and kazoo. No candidate of a Latch is among them.
var revocable = regexp.MustCompile(`(lock-|lease-|__READ__|__WRIT__|__lock__|__rlock__)-?[0-9]+$`)

// Revoke asks a participant of any recipe, a holder or a waiter, to release its lock. The
// participant's Hold.Revoked or Term.Revoked is closed, and a Curator client calls its
// RevocationListener. It is a request: the holder decides when it releases the lock. That of a
// waiter is closed when its hold begins. The client must have the namespace of the one that listed
// the participant.
//
// Revoke overwrites the data of the node, and so the data of WithIdentity or WithData, with
// RevokeMessage. It returns when the request is written, not when the lock is free. Revoking twice
// is the same as once, so a write of unknown outcome is repeated, by the client's retry policy.
// Revoke fails
//
//   - with zk.ErrNoNode if the participant has left the queue: it has released the lock, given up,
//     or lost its session;
//   - with framework.ErrInvalidPath if the node is not one of a queue, such as the zero
//     Participant's, and for a candidate of a leader.Latch. Curator's candidates of a LeaderLatch
//     stop watching a node when its data changes, and then never lead;
//   - when ctx ends or is nil, and like framework.Client.Set: framework.ErrNotConnected once the
//     retry policy is exhausted, framework.ErrClosed, zk.ErrNoAuth, ...
//
// framework.OutcomeOf reports for each of these errors whether the request may have been written.
//
// Curator: Revoker.attemptRevoke, which ignores a missing node.
func Revoke(ctx context.Context, client *framework.Client, participant Participant) error {
	node := participant.Node
	outcome, err := framework.NotApplied, checkRevoke(ctx, client, participant)
	if err == nil {
		outcome, err = revoke(ctx, client, node)
	}
	if err != nil {
		return &framework.Error{Op: "revoke", Path: node, Outcome: outcome, Err: err}
	}
	return nil
}

// checkRevoke returns an error if the arguments of Revoke make no request.
func checkRevoke(ctx context.Context, client *framework.Client, participant Participant) error {
	if ctx == nil {
		return framework.ErrNilContext
	}
	if err := bridge.Of(client).Validate(); err != nil {
		return err
	}
	if err := framework.CheckPath(participant.Node); err != nil {
		return err
	}
	if !participant.Revocable() {
		return fmt.Errorf("%w: not a node of a lock, a semaphore or an Election", framework.ErrInvalidPath)
	}
	return nil
}

// Revocable reports whether Revoke writes a request to release into the node of p: it is one of a
// lock, a semaphore or an Election, and not a candidate of a Latch. It does not mean that the client
// with the node looks at requests. Clients of kazoo do not.
//
// Curator: lock nodes are revocable after makeRevocable only, which the node does not show.
func (p Participant) Revocable() bool { return revocable.MatchString(p.Node) }

// revoke writes the request. It does not read the version of the node first, because a server that
// is behind may not have the node yet. The outcome is that of all attempts.
func revoke(ctx context.Context, client *framework.Client, node string) (outcome framework.Outcome, err error) {
	outcome = framework.NotApplied
	err = retry.Do(ctx, bridge.Of(client).RetryPolicy(), framework.IsTransient, func(ctx context.Context) error {
		_, err := client.Set(ctx, node, []byte(ownership.RevokeMessage), -1)
		if last := framework.OutcomeOf(err); last != framework.NotApplied {
			outcome = last
		}
		return err
	})
	if err != nil && ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		err = fmt.Errorf("the participant has left the queue: %w", err)
	}
	return outcome, err
}
