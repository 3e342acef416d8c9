package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework/internal/conn"
)

func TestErrorsOfRepliesHaveOutcomes(t *testing.T) {
	for _, row := range []struct {
		err       error
		outcome   Outcome
		transient bool
		matches   error
	}{
		{zk.ErrNoNode, NotApplied, false, zk.ErrNoNode},
		{zk.ErrNoAuth, NotApplied, false, zk.ErrNoAuth},
		{zk.ErrBadVersion, NotApplied, false, zk.ErrBadVersion},
		{zk.ErrNoChildrenForEphemerals, NotApplied, false, zk.ErrNoChildrenForEphemerals},
		{zk.ErrNodeExists, NotApplied, false, zk.ErrNodeExists},
		{zk.ErrNotEmpty, NotApplied, false, zk.ErrNotEmpty},
		{zk.ErrInvalidACL, NotApplied, false, zk.ErrInvalidACL},
		{zk.ErrAPIError, NotApplied, false, zk.ErrAPIError},
		{zk.ErrReconfigDisabled, NotApplied, false, zk.ErrReconfigDisabled},
		{zk.ErrBadArguments, NotApplied, false, zk.ErrBadArguments},
		{zk.ErrNothing, NotApplied, false, zk.ErrNothing},
		{zk.ErrAuthFailed, NotApplied, false, ErrAuthFailed},
		{zk.ErrSessionExpired, NotApplied, false, ErrSessionLost},
		{zk.ErrSessionMoved, NotApplied, true, zk.ErrSessionMoved},
		{zk.ErrNoServer, NotApplied, true, ErrNotConnected},
		{zk.ErrConnectionClosed, Unknown, true, zk.ErrConnectionClosed},
		{zk.ErrClosing, Unknown, true, zk.ErrClosing},
		{zk.ErrUnknown, Unknown, true, zk.ErrUnknown},
		{io.ErrUnexpectedEOF, Unknown, true, io.ErrUnexpectedEOF},
		{errors.New("unknown error: of another kind"), Unknown, true, nil},
		{fmt.Errorf("wrapped: %w", zk.ErrNoNode), NotApplied, false, zk.ErrNoNode},
		{conn.Code(-1), NotApplied, false, &ServerError{-1}},
		{conn.Code(-2), NotApplied, false, ErrRolledBack},
		{conn.Code(-3), NotApplied, false, &ServerError{-3}},
		{conn.Code(-4), Unknown, true, &ServerError{-4}},
		{conn.Code(-5), NotApplied, false, &ServerError{-5}},
		{conn.Code(-6), NotApplied, false, ErrUnimplemented},
		{conn.Code(-7), Unknown, true, &ServerError{-7}},
		{conn.Code(-12), NotApplied, false, ErrSessionLost},
		{conn.Code(-13), NotApplied, false, &ServerError{-13}},
		{conn.Code(-14), NotApplied, false, &ServerError{-14}},
		{conn.Code(-113), NotApplied, false, &ServerError{-113}},
		{conn.Code(-119), NotApplied, false, &ServerError{-119}},
		{conn.Code(-120), NotApplied, false, &ServerError{-120}},
		{conn.Code(-121), NotApplied, false, &ServerError{-121}},
		{conn.Code(-122), Unknown, true, &ServerError{-122}},
		{conn.Code(-124), NotApplied, false, &ServerError{-124}},
		{conn.Code(-125), NotApplied, false, &ServerError{-125}},
		{conn.Code(-127), NotApplied, true, &ServerError{-127}},
		{conn.Code(-4711), NotApplied, false, &ServerError{-4711}},
	} {
		err := replyError(row.err)
		require.Equal(t, row.outcome, OutcomeOf(err), "outcome of %q", row.err)
		require.Equal(t, row.transient, IsTransient(err), "transience of %q", row.err)
		switch want := row.matches.(type) {
		case nil:
		case *ServerError:
			var got *ServerError
			require.ErrorAs(t, err, &got)
			require.Equal(t, want.Code, got.Code)
		default:
			require.ErrorIs(t, err, want)
		}
	}
	require.NoError(t, replyError(nil))
}

func TestErrorOfAMissingPermissionMentionsTheACL(t *testing.T) {
	for _, err := range []error{zk.ErrNoAuth, fmt.Errorf("wrapped: %w", zk.ErrNoAuth)} {
		err = &Error{"get", "/a", NotApplied, replyError(err)}
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.EqualError(t, err, "get /a: zk: no permission (ACL)")
	}
}

func TestErrorsOfTheServerKeepTheirCode(t *testing.T) {
	for _, code := range []int{-2, -6, -12, -127, -4711} {
		var server *ServerError
		require.ErrorAs(t, replyError(conn.Code(code)), &server)
		require.Equal(t, code, server.Code)
		require.ErrorContains(t, server, fmt.Sprint(code))
	}
	require.EqualError(t, &ServerError{-125}, "zk: server error -125: quota exceeded")
	require.EqualError(t, &ServerError{-4711}, "zk: server error -4711: unknown")
}

func TestOutcomeOfErrorsOfNoOperation(t *testing.T) {
	require.Equal(t, Applied, OutcomeOf(nil))
	require.Equal(t, Unknown, OutcomeOf(io.EOF))
	require.False(t, IsTransient(io.EOF))
	require.False(t, IsTransient(nil))
	require.False(t, IsTransient(closedAfter(transient(Unknown, io.EOF))), "a closed client cannot retry")
}

func TestErrorHasOperationPathReasonAndOutcome(t *testing.T) {
	for want, err := range map[string]*Error{
		"set /a: zk: version conflict":                   {"set", "/a", NotApplied, zk.ErrBadVersion},
		"set /a: zk: version conflict (outcome unknown)": {"set", "/a", Unknown, zk.ErrBadVersion},
		"multi: zk: node does not exist":                 {"multi", "", NotApplied, zk.ErrNoNode},
		"revoke /a: set /a: zk: version conflict (outcome unknown)": {
			"revoke", "/a", Unknown, &Error{"set", "/a", Unknown, zk.ErrBadVersion},
		},
	} {
		require.EqualError(t, err, want)
	}
	require.Equal(t, []string{"unknown", "not applied", "applied", "unknown"},
		[]string{Unknown.String(), NotApplied.String(), Applied.String(), Outcome(9).String()})
}

func TestOutermostErrorDecidesTheOutcome(t *testing.T) {
	inner := transient(NotApplied, io.EOF)
	require.Equal(t, Unknown, OutcomeOf(&Error{"get", "/a", Unknown, inner}))
	require.True(t, IsTransient(&Error{"get", "/a", Unknown, inner}))
	require.Equal(t, NotApplied, OutcomeOf(fmt.Errorf("more: %w", inner)))
	elsewhere := &Error{"create", "/b", NotApplied, io.EOF} // the cause with which the caller's context was canceled
	require.Equal(t, Unknown, OutcomeOf(fmt.Errorf("more: %w", transient(Unknown, elsewhere))))
}

func TestStatesHaveNames(t *testing.T) {
	var names []string
	for s := Connecting; s <= Closed; s++ {
		names = append(names, s.String())
	}
	require.Equal(t, []string{
		"connecting", "connected", "suspended", "reconnected", "lost", "authentication failed", "closed",
	}, names)
	require.Equal(t, "state 7", (Closed + 1).String())
	require.Equal(t, "state -1", State(-1).String())
	for s, want := range map[State]bool{
		Connecting: false, Connected: true, Suspended: false, Reconnected: true, Lost: false, AuthFailed: false,
		Closed: false,
	} {
		require.Equal(t, want, s.IsConnected(), "%v", s)
	}
}

// The session of a Client can be lost when the context of an operation ends. If the error is about the
// session, it says that another attempt may succeed, with another context.
func TestSessionThatIsLostWhenAContextEndsIsTransient(t *testing.T) {
	lost := &attemptError{outcome: Unknown, err: fmt.Errorf("%w: closed", ErrSessionLost)}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	withHold, cancelHold := context.WithCancelCause(t.Context())
	cancelHold(ErrSessionLost)
	for name, example := range map[string]struct {
		ctx       context.Context
		o         ops
		transient bool
	}{
		"goes on":           {t.Context(), ops{}, true},
		"ended":             {ended, ops{}, true},
		"ended with a hold": {withHold, ops{}, false},
		"of a session":      {ended, ops{ofSession: true}, false},
	} {
		err := example.o.passing(example.ctx, Unknown, lost)
		require.Equal(t, example.transient, IsTransient(err), name)
		require.ErrorIs(t, err, ErrSessionLost, name)
	}
}
