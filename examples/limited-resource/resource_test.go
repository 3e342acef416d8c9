package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
)

// user is an access.
type user struct {
	alone bool
	token int64
}

func TestResourceDetectsAccessesThatMustNotBeInside(t *testing.T) {
	const alone, shared = true, false
	for name, c := range map[string]struct {
		room  int
		leave bool // each access before the next one enters
		users []user
		want  error // of the last one; of the others nil
	}{
		"two exclusive accesses":              {1, false, []user{{alone, 1}, {alone, 2}}, errNotAlone},
		"a reader beside a writer":            {9, false, []user{{alone, 1}, {shared, 2}}, errNotAlone},
		"a writer beside a reader":            {9, false, []user{{shared, 1}, {alone, 2}}, errNotAlone},
		"more than the room":                  {2, false, []user{{shared, 1}, {shared, 2}, {shared, 3}}, errCrowded},
		"as many as the room":                 {2, false, []user{{shared, 2}, {shared, 1}}, nil},
		"one access after the other":          {1, true, []user{{alone, 1}, {alone, 2}, {alone, 3}}, nil},
		"a smaller token":                     {1, true, []user{{alone, 2}, {alone, 1}}, fence.ErrStale},
		"no token":                            {1, true, []user{{alone, 0}}, fence.ErrNoToken},
		"a reader from before the last write": {9, true, []user{{alone, 2}, {shared, 1}}, fence.ErrStale},
		"readers in any order":                {9, true, []user{{alone, 1}, {shared, 3}, {shared, 2}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &resource{room: c.room}
			for _, v := range c.users {
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
