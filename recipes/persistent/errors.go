package persistent

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

var (
	// ErrOccupied means that a node of another program is at the path: see WithOccupiedTimeout.
	// Start returns it if another Node of the same client has the path.
	ErrOccupied = errors.New("persistent: a node of another owner is at the path")
	// ErrNotStarted means that WaitReady was called before Start.
	ErrNotStarted = errors.New("persistent: not started")
	// ErrStarted means that Start was called before.
	ErrStarted = errors.New("persistent: started before")
	// ErrClosed means that a Node is closed: by Close or by the end of the context of Start.
	ErrClosed = errors.New("persistent: closed")
	// ErrPending means that Close has returned before the deletion of the node was confirmed. The
	// deletion continues in the background.
	ErrPending = errors.New("persistent: the deletion is not confirmed yet")
)

// errGoroutineEnded means that code of the program, such as metrics, has ended the goroutine.
var errGoroutineEnded = errors.New("persistent: code of the program ended the goroutine of the node")

// final are the errors that do not pass, whatever other errors are joined with them.
var final = []error{framework.ErrClosed, framework.ErrAuthFailed}

// isTransient reports whether another attempt may succeed after err. A missing node is a parent
// that was deleted right after it was created.
func isTransient(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	if slices.ContainsFunc(final, is) {
		return false
	}
	return framework.IsTransient(err) || is(framework.ErrSessionLost) || is(zk.ErrNoNode)
}
