package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

// Revoke asks for the lock node back, which must be named as one of those with these markers are. A node that is gone is fine.
func Revoke(ctx context.Context, c *framework.Client, node string, markers ...string) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if err := framework.CheckPath(node); err != nil {
		return err
	}
	if _, ok := parse(path.Base(node), markers); !ok {
		return fmt.Errorf("%w %q: not a lock node, whose name ends in one of %q and a number", framework.ErrInvalidPath, node, markers)
	}
	for {
		err := revoke(ctx, c, node)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

// revoke writes the request once. It goes by the version, so that it may be repeated when the answer is lost.
func revoke(ctx context.Context, c *framework.Client, node string) error {
	_, stat, err := c.Get(ctx, node)
	if err == nil {
		_, err = c.Set(ctx, node, []byte(recipes.RevokeMessage), stat.Version)
	}
	if errors.Is(err, zk.ErrBadVersion) && framework.OutcomeOf(err) == framework.Unknown {
		data, _, readErr := c.Get(ctx, node)
		if readErr == nil && bytes.Equal(data, []byte(recipes.RevokeMessage)) {
			return nil // an earlier attempt was applied
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
