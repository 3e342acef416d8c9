// Package kept has what the packages that are built on kept nodes share.
package kept

import (
	"errors"

	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/recipes/persistent"
)

// Errors are the errors of a package that stand for those of package persistent.
type Errors struct{ Closed, Occupied, Pending error }

// Of returns the package's error for err, which is one of a persistent.Node, or nil.
func (e Errors) Of(err error) error {
	for _, pair := range [][2]error{
		{persistent.ErrClosed, e.Closed}, {persistent.ErrOccupied, e.Occupied}, {persistent.ErrPending, e.Pending},
	} {
		switch theirs, ours := pair[0], pair[1]; {
		case err == theirs:
			return ours
		case errors.Is(err, theirs):
			return errtext.Because(ours, err)
		}
	}
	return err
}
