package counter

import "errors"

var (
	// ErrCorrupt means that the data of a node is not a number of the counter's kind. The text has the
	// length of the data. Set overwrites such data. Curator: a RuntimeException.
	ErrCorrupt = errors.New("counter: the data is not a number")
	// ErrOverflow means that the result of Add does not fit into the counter. Nothing was written.
	// Curator: the number wraps around.
	ErrOverflow = errors.New("counter: the result does not fit")
)

// errReplaced means that a node was deleted while the answer to a write was missing.
var errReplaced = errors.New("the node was deleted or written by others while an answer was missing")
