// Package ctxerr makes errors of contexts that have ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Of is the error of a context that has ended: it matches both ctx.Err() and context.Cause(ctx).
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
