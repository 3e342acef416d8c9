package queue

import (
	"context"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/retry"
)

// Revoke asks the client with a lock node to release it. The name of the node must have one of
// the markers. It is no error if the node does not exist.
func Revoke(ctx context.Context, c *framework.Client, node string, markers ...string) error {
	if ctx == nil {
		return framework.ErrNilContext
	}
	if err := bridge.Of(c).Validate(); err != nil {
		return err
	}
	if err := framework.CheckPath(node); err != nil {
		return err
	}
	if _, ok := parseName(path.Base(node), markers); !ok {
		return fmt.Errorf("%w %q: not a lock node, whose name ends in one of %q and a number",
			framework.ErrInvalidPath, node, markers)
	}
	// The request is repeated, although a write without a version otherwise is not: to ask twice is as
	// good as once. The version must not be read first, because a server that is behind may not have the
	// node yet.
	var last error
	err := retry.Do(ctx, bridge.Of(c).RetryPolicy(), framework.IsTransient, func(ctx context.Context) error {
		_, last = c.Set(ctx, node, []byte(ownership.RevokeMessage), -1)
		return last
	})
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return &framework.Error{Op: "revoke", Path: node, Outcome: framework.OutcomeOf(last), Err: err}
	}
	return nil
}
