package errtext_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/errtext"
)

func TestNameOfAPackageIsThereOnce(t *testing.T) {
	lost, closed := errors.New("framework: session lost"), errors.New("framework: client closed")
	latch := errors.New("leader: the latch is closed")
	for want, err := range map[string]error{
		"framework: client closed: session lost":    errtext.Because(closed, lost),
		"leader: the latch is closed: session lost": errtext.Because(latch, lost),
		"leader: the latch is closed: get /a: session lost": errtext.Because(latch,
			fmt.Errorf("get /a: %w", lost)),
		"leader: the latch is closed: client closed: session lost": errtext.Because(latch,
			errtext.Because(closed, lost)),
		"framework: client closed: zk: no node": errtext.Because(closed, errors.New("zk: no node")),
	} {
		require.EqualError(t, err, want)
	}
	err := errtext.Because(latch, errtext.Because(closed, lost))
	for _, is := range []error{latch, closed, lost} {
		require.ErrorIs(t, err, is)
	}
}
