package inspect

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// maxBreaks is how often Break begins again because the data of the node has changed meanwhile.
const maxBreaks = 10

// Break deletes a node of a queue, of a holder or a waiter, without asking its client. recipes.Revoke
// asks. It returns the token of the node, which is the fencing token of the hold that it ends: from
// now on a resource must refuse that token.
//
// The holder goes on until it notices, as docs/guarantees.md says under "A lock node is deleted". The
// next waiter holds the lock at once. So two clients may work at the same time, and only the token,
// or recipes.Hold.Guard, stops the first one. A waiter of docent whose node is deleted queues again
// at the end.
//
// Break deletes exactly the node with the path and the token of n, whatever its data is meanwhile.
// It fails
//
//   - with zk.ErrNoNode if that node does not exist any more, also where another one has its path;
//   - with framework.ErrInvalidPath if the name is not that of a node of a queue: members, instances,
//     barriers and counters are not broken;
//   - when ctx ends or is nil, and as framework.Client.Delete does.
//
// framework.OutcomeOf reports for each of these errors whether the node may have been deleted. After
// an unknown outcome call Break again: with zk.ErrNoNode the node is deleted.
//
// If an answer is lost and the node is not there afterwards, Break returns no error: the node is
// deleted, by this call or otherwise.
//
// The servers cannot compare the token in the transaction that deletes. Break reads the node, and
// deletes it at the version that it has read. The names of docent, Curator, kazoo and go-zookeeper
// are used once, so that is exact for them.
func Break(ctx context.Context, client *framework.Client, n Node) (ID, error) {
	outcome, err := framework.NotApplied, checkBreak(ctx, client, n)
	if err == nil {
		outcome, err = breakNode(ctx, client, n)
	}
	if err != nil {
		return 0, &framework.Error{Op: "break", Path: n.Path, Outcome: outcome, Err: err}
	}
	return n.Token, nil
}

// checkBreak returns an error if the arguments of Break make no request.
func checkBreak(ctx context.Context, client *framework.Client, n Node) error {
	if ctx == nil {
		return framework.ErrNilContext
	}
	if err := bridge.Of(client).Validate(); err != nil {
		return err
	}
	if err := framework.CheckPath(n.Path); err != nil {
		return err
	}
	if !ending.MatchString(n.Path) || n.Token == 0 {
		return fmt.Errorf("%w: not a node of a queue with its token", framework.ErrInvalidPath)
	}
	return nil
}

// breakNode deletes the node. The outcome is that of the deletion: a read that fails deletes nothing.
func breakNode(ctx context.Context, client *framework.Client, n Node) (framework.Outcome, error) {
	// This client's server may not have the node yet.
	if err := client.Sync(ctx, n.Path); err != nil {
		return framework.NotApplied, ctxerr.With(ctx, err)
	}
	for try := 1; ; try++ {
		stat, err := client.Exists(ctx, n.Path)
		if err != nil {
			return framework.NotApplied, ctxerr.With(ctx, err)
		}
		if ID(stat.Czxid) != n.Token {
			return framework.NotApplied,
				fmt.Errorf("another node is there now, with the token %v: %w", ID(stat.Czxid), zk.ErrNoNode)
		}
		err = client.Delete(ctx, n.Path, stat.Version)
		outcome := framework.OutcomeOf(err)
		if ctxerr.Answered(ctx, err, zk.ErrNoNode) && outcome == framework.Unknown {
			return framework.Applied, nil
		}
		if try == maxBreaks || !ctxerr.Answered(ctx, err, zk.ErrBadVersion) {
			return outcome, ctxerr.With(ctx, err)
		}
	}
}
