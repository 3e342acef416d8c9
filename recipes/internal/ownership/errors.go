package ownership

import (
	"errors"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/errtext"
)

// See package recipes, which exports them.
var (
	ErrNotHeld        = errors.New("recipes: not held")
	ErrReleasePending = errors.New("recipes: released, deletion of the node not confirmed")
	ErrNodeDeleted    = errors.New("recipes: lock node deleted by another client")
	ErrForeignLost    = errors.New("recipes: lock of another service lost")
	ErrUnsupported    = errors.New("recipes: not possible with a lock of another service")
	ErrManySessions   = errors.New("recipes: the locks belong to several sessions or namespaces")
)

// errZeroHold is the reason why a hold that no recipe made has ended.
var errZeroHold = errtext.Because(ErrNotHeld, framework.ErrZeroValue)
