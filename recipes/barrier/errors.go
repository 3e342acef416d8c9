package barrier

import "errors"

var (
	// ErrParties means that the barrier was created for another number of parties, or that there is
	// another node at the path.
	ErrParties = errors.New("barrier: the numbers of parties differ")
	// ErrNodeDeleted means that another client has deleted the node of a party, or that of the
	// barrier.
	ErrNodeDeleted = errors.New("barrier: node deleted by another client")
	// ErrLeft means that Entry.Leave was called.
	ErrLeft = errors.New("barrier: left")
	// ErrNotOpen means that a latch is not open yet, so that it is not deleted.
	ErrNotOpen = errors.New("barrier: the latch is not open")
)
