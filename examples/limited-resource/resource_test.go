package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
)

// visitor is somebody who enters.
type visitor struct {
	alone bool
	token int64
}

func TestResourceFindsOutWhoMustNotBeInside(t *testing.T) {
	const alone, together = true, false
	for name, c := range map[string]struct {
		room  int
		leave bool // each before the next enters
		who   []visitor
		want  error // of the last one; of the others nil
	}{
		"two who are to be alone":             {1, false, []visitor{{alone, 1}, {alone, 2}}, errNotAlone},
		"a reader beside a writer":            {9, false, []visitor{{alone, 1}, {together, 2}}, errNotAlone},
		"a writer beside a reader":            {9, false, []visitor{{together, 1}, {alone, 2}}, errNotAlone},
		"more than there is room for":         {2, false, []visitor{{together, 1}, {together, 2}, {together, 3}}, errCrowded},
		"as many as there is room for":        {2, false, []visitor{{together, 2}, {together, 1}}, nil},
		"one after the other":                 {1, true, []visitor{{alone, 1}, {alone, 2}, {alone, 3}}, nil},
		"a smaller token":                     {1, true, []visitor{{alone, 2}, {alone, 1}}, fence.ErrStale},
		"no token":                            {1, true, []visitor{{alone, 0}}, fence.ErrNoToken},
		"a reader from before the last write": {9, true, []visitor{{alone, 2}, {together, 1}}, fence.ErrStale},
		"readers in any order":                {9, true, []visitor{{alone, 1}, {together, 3}, {together, 2}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &resource{room: c.room}
			for _, v := range c.who {
				require.Empty(t, r.violations)
				r.enter(v.alone, v.token)
				if c.leave {
					r.leave(v.alone)
				}
			}
			if c.want == nil {
				require.Empty(t, r.violations)
				return
			}
			require.Len(t, r.violations, 1)
			require.ErrorIs(t, r.violations[0], c.want)
		})
	}
}

func TestResourceCounts(t *testing.T) {
	r := &resource{room: 3}
	for range 2 {
		require.NoError(t, r.use(false, 1, func() error {
			return r.use(false, 2, func() error { return nil })
		}))
	}
	require.Equal(t, []int{4, 2, 0, 0}, []int{r.uses, r.peak, r.inside, r.alone})
}
