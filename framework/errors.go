package framework

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// The errors of this package. Errors of ZooKeeper (zk.ErrNoNode, zk.ErrNodeExists,
// zk.ErrBadVersion, zk.ErrNoAuth and so on) are returned as well and match with errors.Is. The text
// for zk.ErrNoAuth is "no permission (ACL)". Package recipes has a table of all errors of the library.
var (
	// ErrSessionLost means that the session of the operation or hold has ended, or must be assumed
	// to have ended. An operation of a Client fails with it when the retry policy is exhausted
	// before there is another session. Then IsTransient is true.
	ErrSessionLost = errors.New("framework: session lost")
	// ErrSuspended means that a hold has ended because the connection was suspended; see Strict.
	ErrSuspended = errors.New("framework: connection suspended")
	// ErrClosed means that the client has been closed.
	ErrClosed = errors.New("framework: client closed")
	// ErrNotConnected means that no server could be reached in time. The error chain has the last
	// error of each server.
	ErrNotConnected = errors.New("framework: not connected")
	// ErrAuthFailed means that the servers refuse a credential of WithAuth.
	ErrAuthFailed = errors.New("framework: authentication failed")
	// ErrTooLarge means that a request would exceed the limit of the servers. It was not sent.
	ErrTooLarge = errors.New("framework: request too large")
	// ErrInvalidPath means that a path is invalid; the text has the reason. The request was not
	// sent.
	ErrInvalidPath = znode.ErrInvalid
	// ErrUnimplemented means that the server does not know the operation. The server then closes
	// the connection.
	ErrUnimplemented = errors.New("framework: not implemented by the server")
	// ErrRolledBack is the error of the operations of a failed transaction that did not cause the
	// failure.
	ErrRolledBack = errors.New("framework: rolled back")
	// ErrZeroValue means that a value did not come from its constructor: a Client not from New, a
	// Session not from Client.Session, and so on in all packages.
	ErrZeroValue = errors.New("framework: use of a zero value")
	// ErrNilContext means that a context is nil.
	ErrNilContext = errors.New("framework: nil context")
)

// Outcome is what a failed operation did on the servers.
type Outcome int

const (
	// Unknown means that the operation may have been applied, or may still be applied.
	Unknown Outcome = iota
	// NotApplied means that the operation was not applied and will not be.
	NotApplied
	// Applied means that the operation was applied.
	Applied
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case NotApplied:
		return "not applied"
	case Applied:
		return "applied"
	}
	return "unknown"
}

// OutcomeOf returns the outcome of the operation that returned err. It returns Applied for a nil
// error, and Unknown for an error that does not come from this package. For an error of retry.Do it
// is the outcome of the last attempt: an attempt before it may have been applied.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Applied
	}
	// The outermost error counts. An inner one may be of another operation, such as the cause of a
	// cancelled context.
	var e interface{ operationOutcome() Outcome }
	if errors.As(err, &e) {
		return e.operationOutcome()
	}
	return Unknown
}

// Error is the failure of an operation.
type Error struct {
	Op      string // "create", "set" and so on
	Path    string // as the caller gave it
	Outcome Outcome
	Err     error
}

// unknownText ends the text of an error whose outcome is unknown.
const unknownText = " (outcome unknown)"

// Error returns the operation, the path and the reason. It says if the outcome is unknown, unless the
// reason ends in that.
func (e *Error) Error() string {
	text := e.Op
	if e.Path != "" {
		text += " " + e.Path
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Outcome == Unknown && !strings.HasSuffix(text, unknownText) {
		text += unknownText
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) operationOutcome() Outcome { return e.Outcome }

// attemptError is the failure of one attempt at an operation.
type attemptError struct {
	outcome   Outcome
	transient bool // another attempt may succeed
	abandoned bool // the answer has not come yet; it will be handled
	err       error
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

func (e *attemptError) operationOutcome() Outcome { return e.outcome }

func notApplied(err error) error { return &attemptError{outcome: NotApplied, err: err} }

func transient(outcome Outcome, err error) error {
	return &attemptError{outcome: outcome, transient: true, err: err}
}

// invalid returns the error of an invalid argument.
func invalid(format string, args ...any) error {
	return notApplied(fmt.Errorf("framework: "+format, args...))
}

// rejected are final answers of a server.
var rejected = []error{
	zk.ErrNoNode, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
	zk.ErrInvalidACL, zk.ErrAPIError, zk.ErrReconfigDisabled, zk.ErrBadArguments, zk.ErrNothing,
}

// noPermission is zk.ErrNoAuth with another text. The original "not authenticated" reads like a
// wrong password, which is ErrAuthFailed.
type noPermission struct{}

func (noPermission) Error() string { return "zk: no permission (ACL)" }
func (noPermission) Unwrap() error { return zk.ErrNoAuth }

// replyError returns the error of an attempt from the error of its reply.
func replyError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoServer):
		return transient(NotApplied, fmt.Errorf("%w: %w", ErrNotConnected, err))
	case errors.Is(err, zk.ErrSessionMoved):
		return transient(NotApplied, err)
	case errors.Is(err, zk.ErrSessionExpired):
		return notApplied(fmt.Errorf("%w: %w", ErrSessionLost, err))
	case errors.Is(err, zk.ErrAuthFailed):
		return notApplied(fmt.Errorf("%w: %w", ErrAuthFailed, err))
	}
	if errors.Is(err, zk.ErrNoAuth) {
		return notApplied(noPermission{})
	}
	for _, r := range rejected {
		if errors.Is(err, r) {
			return notApplied(err)
		}
	}
	var code conn.Code
	if errors.As(err, &code) {
		return codeError(int(code))
	}
	return transient(Unknown, err) // zk.ErrConnectionClosed, or an unreadable reply
}

var codeTexts = map[int]string{
	-1: "system error", -2: "runtime inconsistency", -3: "data inconsistency", -4: "connection loss",
	-5: "marshalling error", -6: "unimplemented", -7: "operation timeout", -12: "unknown session",
	-13: "new configuration has no quorum", -14: "reconfiguration in progress", -113: "invalid callback",
	-119: "not read-only", -120: "ephemeral on a local session", -121: "no such watcher", -122: "request timeout",
	-124: "session closed: requires SASL authentication", -125: "quota exceeded", -127: "throttled",
}

// ServerError is an error code of a server for which package zk has no error.
type ServerError struct{ Code int }

// Error returns the code and its meaning.
func (e *ServerError) Error() string {
	text, known := codeTexts[e.Code]
	if !known {
		text = "unknown"
	}
	return fmt.Sprintf("zk: server error %d: %s", e.Code, text)
}

func codeError(code int) error {
	err := error(&ServerError{code})
	switch code {
	case -4, -7, -122: // lost or timed out inside the ensemble
		return transient(Unknown, err)
	case -2:
		return notApplied(fmt.Errorf("%w: %w", ErrRolledBack, err))
	case -6:
		return notApplied(fmt.Errorf("%w: %w", ErrUnimplemented, err))
	case -12:
		return notApplied(fmt.Errorf("%w: %w", ErrSessionLost, err))
	case -127:
		return transient(NotApplied, err)
	}
	return notApplied(err)
}

// IsTransient reports whether an operation failed for want of a connection or a session, so that
// the same operation may succeed later. It is true in these cases:
//
//   - No server was reached, an answer was lost, or the ensemble was too busy.
//   - An operation of a Client failed with ErrSessionLost. The client opens another session,
//     for which Client.WaitConnected waits.
//
// It is false for ErrSessionLost of a Session, of a hold, and of a context that ended with one of
// them, because these have ended for good. It is false for ErrClosed, for ErrAuthFailed, and for
// errors by which the servers refuse a request. It does not say whether the operation is safe to
// repeat: see OutcomeOf.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	var a *attemptError
	return errors.As(err, &a) && a.transient && !errors.Is(err, ErrClosed)
}
