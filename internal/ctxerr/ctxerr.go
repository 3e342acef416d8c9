// Package ctxerr returns errors for contexts that have ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Of returns the error of a context that has ended. It matches both ctx.Err() and
// context.Cause(ctx).
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// With returns err, the error of an operation with ctx. If ctx has ended, the error also matches those
// of Of: an answer that arrives when ctx ends is not taken for an answer any more, see Answered.
func With(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", Of(ctx), err)
}

// Answered reports whether err, of an operation with ctx, is target because the servers answered
// so. Once ctx has ended, err may be the cause of ctx, which does not describe the operation.
func Answered(ctx context.Context, err, target error) bool {
	return ctx.Err() == nil && errors.Is(err, target)
}
