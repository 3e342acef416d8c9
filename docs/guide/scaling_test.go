package guide

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/mutex"
)

// fragment scaling-change
func setsOfAChange(before, after []ensembles.Ensemble) (old, both, next *ensembles.Set, err error) {
	if old, err = ensembles.New(before); err != nil {
		return nil, nil, nil, err
	}
	if both, err = ensembles.New(after, ensembles.WithPrevious(before...)); err != nil {
		return nil, nil, nil, err
	}
	next, err = ensembles.New(after)
	return old, both, next, err
}

// end

func TestProgramsOfNeighbouringStatesExcludeEachOther(t *testing.T) {
	ctx, east := connected(t)
	_, west := connected(t)
	one, other := ensembles.Ensemble{Name: "east", Client: east}, ensembles.Ensemble{Name: "west", Client: west}
	old, both, next, err := setsOfAChange([]ensembles.Ensemble{one}, []ensembles.Ensemble{one, other})
	require.NoError(t, err)
	lockOf := func(s *ensembles.Set) *ensembles.Lock {
		l, err := s.Lock("order-2", func(c *framework.Client) (recipes.Locker, error) {
			return mutex.New(c, "/order-2")
		})
		require.NoError(t, err)
		return l
	}
	for _, pair := range [][2]*ensembles.Set{{old, both}, {both, old}, {both, next}, {next, both}} {
		hold, err := lockOf(pair[0]).Acquire(ctx)
		require.NoError(t, err)
		_, err = lockOf(pair[1]).TryAcquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Release())
	}
}
