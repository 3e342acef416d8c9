// Package errtext composes the texts of errors.
//
// The text of an exported error of the library begins with the name of its package. An error that
// wraps it adds an operation, a path or values, and no name of a package. Where one exported error
// has another one as its cause, Because leaves out the second name.
package errtext

import "strings"

// Packages has the names in the texts of errors that have one.
var Packages = []string{
	"framework", "recipes", "mutex", "rwlock", "semaphore", "multilock", "striped", "leader", "barrier",
	"counter", "condition", "cache", "persistent", "group", "discovery", "inspect", "queue", "retry", "fence",
}

// because is an error and its cause.
type because struct{ err, cause error }

// Because returns an error that matches err and cause. Its text is that of both, without the names of
// packages in that of the cause. Where errors.As finds a value in both, it is that of err.
func Because(err, cause error) error { return &because{err, cause} }

func (b *because) Error() string {
	text := ": " + b.cause.Error()
	for _, name := range Packages {
		text = strings.ReplaceAll(text, ": "+name+": ", ": ")
	}
	return b.err.Error() + text
}

func (b *because) Unwrap() []error { return []error{b.err, b.cause} }
