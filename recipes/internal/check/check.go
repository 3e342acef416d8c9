// Package check validates the arguments of recipes.
package check

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Path returns an error if path cannot be the path of a lock of c.
func Path(c *framework.Client, path string) error {
	if err := bridge.Of(c).Validate(); err != nil {
		return err
	}
	if err := framework.CheckPath(path); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: a lock needs a node of its own", framework.ErrInvalidPath, path)
	}
	return nil
}

// Call returns an error for a call of a method that cannot succeed: on a value that its
// constructor has not made, without a context, or with one that has ended.
func Call(ctx context.Context, pkg, kind string, made bool) error {
	switch {
	case !made:
		return fmt.Errorf("%w: %s.%s", framework.ErrZeroValue, pkg, kind)
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	}
	return nil
}
