package framework

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
)

// The errors of this package. ZooKeeper's own (zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNoAuth, ...) come
// through as they are and match with errors.Is; the text for zk.ErrNoAuth is "no permission (ACL)".
var (
	// ErrSessionLost means that the session the operation or hold belongs to is over, or must be taken
	// to be. A Client's operation fails with it when the retry policy has given up before there was
	// another session: then IsTransient is true.
	ErrSessionLost = errors.New("framework: session lost")
	// ErrSuspended means that a hold is over because the connection was suspended, see Strict.
	ErrSuspended = errors.New("framework: connection suspended")
	// ErrClosed means that the client has been closed.
	ErrClosed = errors.New("framework: client closed")
	// ErrNotConnected means that no server could be reached in the time allowed. The chain says what was tried.
	ErrNotConnected = errors.New("framework: not connected")
	// ErrAuthFailed means that the servers reject a credential given with WithAuth.
	ErrAuthFailed = errors.New("framework: authentication failed")
	// ErrTooLarge means that a request would exceed what servers accept. It was not sent.
	ErrTooLarge = errors.New("framework: request too large")
	// ErrInvalidPath means that a path is not one, see the text for why. It was not sent.
	ErrInvalidPath = znode.ErrInvalid
	// ErrUnimplemented means that the server does not know the operation. The server closes the connection after it.
	ErrUnimplemented = errors.New("framework: not implemented by the server")
	// ErrRolledBack is the error of those operations of a failed transaction that are not the cause of its failure.
	ErrRolledBack = errors.New("framework: rolled back")
	// ErrZeroValue means that a Client or Session was used that New or Client.Session did not make.
	ErrZeroValue = errors.New("framework: use of a zero value")
	// ErrNilContext means that a nil context was given.
	ErrNilContext = errors.New("framework: nil context")
)

// Outcome says what became of an operation.
type Outcome int

const (
	// Unknown: the operation may have been applied, or may still be.
	Unknown Outcome = iota
	// NotApplied: it was not applied and will not be.
	NotApplied
	// Applied: it was applied.
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

// OutcomeOf says what err tells about the operation that returned it. A nil error is Applied; an error that does not come
// from an operation of this package is Unknown.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Applied
	}
	var e interface{ whatBecame() Outcome } // the outermost: one further in may be of another operation, as why a context was cancelled
	if errors.As(err, &e) {
		return e.whatBecame()
	}
	return Unknown
}

// Error is a failed operation.
type Error struct {
	Op      string // in words: "create", "set", ...
	Path    string // as the caller gave it
	Outcome Outcome
	Err     error
}

// Error names the operation, the path, the reason, and the outcome unless the reason implies it.
func (e *Error) Error() string {
	text := e.Op
	if e.Path != "" {
		text += " " + e.Path
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Outcome == Unknown {
		text += " (outcome unknown)"
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) whatBecame() Outcome { return e.Outcome }

// attemptError is the failure of one attempt at an operation.
type attemptError struct {
	outcome   Outcome
	transient bool // another attempt may succeed
	abandoned bool // the answer is still to come, and will be taken care of
	err       error
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

func (e *attemptError) whatBecame() Outcome { return e.outcome }

func notApplied(err error) error { return &attemptError{outcome: NotApplied, err: err} }

func transient(outcome Outcome, err error) error {
	return &attemptError{outcome: outcome, transient: true, err: err}
}

// invalid is a definite refusal of an argument.
func invalid(format string, args ...any) error {
	return notApplied(fmt.Errorf("framework: "+format, args...))
}

// rejected are the answers of a server, which are final.
var rejected = []error{
	zk.ErrNoNode, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty,
	zk.ErrInvalidACL, zk.ErrAPIError, zk.ErrReconfigDisabled, zk.ErrBadArguments, zk.ErrNothing,
}

// noPermission is zk.ErrNoAuth, by another text: "not authenticated" reads as if a password were
// wrong, which is ErrAuthFailed.
type noPermission struct{}

func (noPermission) Error() string { return "zk: no permission (ACL)" }
func (noPermission) Unwrap() error { return zk.ErrNoAuth }

// replyError says what the error of a reply means for the attempt that got it.
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
	return transient(Unknown, err) // zk.ErrConnectionClosed, or a reply that cannot be read
}

var codeTexts = map[int]string{
	-1: "system error", -2: "runtime inconsistency", -3: "data inconsistency", -4: "connection loss",
	-5: "marshalling error", -6: "unimplemented", -7: "operation timeout", -12: "unknown session",
	-13: "new configuration has no quorum", -14: "reconfiguration in progress", -113: "invalid callback",
	-119: "not read-only", -120: "ephemeral on a local session", -121: "no such watcher", -122: "request timeout",
	-124: "session closed: requires SASL authentication", -125: "quota exceeded", -127: "throttled",
}

// ServerError is an answer of the server that package zk has no error for.
type ServerError struct{ Code int }

// Error names the code and what it stands for.
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

// IsTransient reports whether err is of an operation that failed for want of a connection or a
// session, so that the same operation may succeed later. It is true
//
//   - if no server was reached, an answer was lost, or the ensemble was too busy;
//   - if a Client's operation failed with ErrSessionLost: the client opens another session, which
//     Client.WaitConnected waits for.
//
// It is false for ErrSessionLost of a Session, of a hold and of a context that has ended with one,
// which are over for good; for ErrClosed, ErrAuthFailed and what the servers refuse. Whether it is
// safe to repeat the operation is another question: see OutcomeOf.
func IsTransient(err error) bool {
	var a *attemptError
	return errors.As(err, &a) && a.transient && !errors.Is(err, ErrClosed)
}
