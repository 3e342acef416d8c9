package ctxerr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/ctxerr"
)

func TestErrorsOfContextsThatHaveEnded(t *testing.T) {
	answer, reason := errors.New("answer"), errors.New("reason")
	ctx, end := context.WithCancelCause(t.Context())
	require.NoError(t, ctxerr.With(ctx, nil))
	require.Equal(t, answer, ctxerr.With(ctx, answer))
	require.True(t, ctxerr.Answered(ctx, fmt.Errorf("read: %w", answer), answer))
	end(reason)
	require.NoError(t, ctxerr.With(ctx, nil))
	for _, want := range []error{context.Canceled, reason} {
		require.ErrorIs(t, ctxerr.Of(ctx), want)
		require.ErrorIs(t, ctxerr.With(ctx, answer), want)
	}
	require.ErrorIs(t, ctxerr.With(ctx, answer), answer)
	require.False(t, ctxerr.Answered(ctx, answer, answer))
	said := fmt.Errorf("read: %w", context.Canceled)
	require.Equal(t, said, ctxerr.With(ctx, said))
}
