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

// Answered reports whether err, of an operation with ctx, is target because the servers said so. Once ctx has ended it may be its cause,
// which says nothing about the operation.
func Answered(ctx context.Context, err, target error) bool {
	return ctx.Err() == nil && errors.Is(err, target)
}
