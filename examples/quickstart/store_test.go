package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/fence"
)

// good is the end of a hold that has not ended.
var good = time.Now().Add(time.Hour)

// step is one step at the store and what it must say to it.
type step struct {
	name string
	visit
	want error
}

func play(t *testing.T, s *store, steps []step) {
	t.Helper()
	for i, st := range steps {
		_, err := s.apply(st.name, st.visit)
		if st.want == nil {
			require.NoError(t, err, "step %d: %+v", i, st)
			continue
		}
		require.ErrorIs(t, err, st.want, "step %d: %+v", i, st)
	}
}

func turn(worker int, token int64, value int) []step {
	return []step{
		{stepEnter, visit{Worker: worker, Token: token, Until: good}, nil},
		{stepRead, visit{Worker: worker, Token: token}, nil},
		{stepWrite, visit{Worker: worker, Token: token, Value: value}, nil},
		{stepLeave, visit{Worker: worker, Token: token}, nil},
	}
}

func TestStoreHasNothingAgainstGoodTurns(t *testing.T) {
	s := newStore()
	play(t, s, turn(1, 10, 1))
	play(t, s, turn(2, 11, 2))
	play(t, s, turn(1, 15, 3))
	got, err := s.check(3, 1, 3)
	require.ErrorContains(t, err, "worker 1 wrote 2 times, not 1")
	require.NotErrorIs(t, err, errLostUpdate)
	require.Equal(t, totals{value: 3, turns: 3, writes: 3, first: 10, newest: 15}, got)
}

func TestStoreFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		fault error
	}{
		"two at once": {[]step{
			{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
			{stepEnter, visit{Worker: 2, Token: 11, Until: good}, errOverlap},
		}, errOverlap},
		"one twice at once": {[]step{
			{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
			{stepEnter, visit{Worker: 1, Token: 11, Until: good}, errOverlap},
		}, errOverlap},
		"lost update": {append(turn(1, 10, 1),
			step{stepEnter, visit{Worker: 2, Token: 11, Until: good}, nil},
			step{stepWrite, visit{Worker: 2, Token: 11, Value: 1}, errLostUpdate},
		), errLostUpdate},
		"value out of nowhere": {[]step{
			{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
			{stepWrite, visit{Worker: 1, Token: 10, Value: 2}, errLostUpdate},
		}, errLostUpdate},
		"same token again": {append(turn(1, 10, 1),
			step{stepEnter, visit{Worker: 2, Token: 10, Until: good}, errTokenOrder},
		), errTokenOrder},
		"smaller token": {append(turn(1, 10, 1),
			step{stepEnter, visit{Worker: 2, Token: 9, Until: good}, errTokenOrder},
		), errTokenOrder},
		"no token": {[]step{
			{stepEnter, visit{Worker: 1}, errTokenOrder},
		}, errTokenOrder},
		"write after leaving": {append(turn(1, 10, 1),
			step{stepWrite, visit{Worker: 1, Token: 10, Value: 2}, errOutside},
		), errOutside},
		"write without entering": {[]step{
			{stepWrite, visit{Worker: 1, Token: 10, Value: 1}, errOutside},
		}, errOutside},
		"read with another's token": {[]step{
			{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
			{stepRead, visit{Worker: 2, Token: 10}, errOutside},
		}, errOutside},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			play(t, s, c.steps)
			_, err := s.check(0, 0, 0)
			require.ErrorIs(t, err, c.fault)
		})
	}
}

func TestStoreRefusesAnOldTokenWithoutAFault(t *testing.T) {
	s := newStore()
	play(t, s, []step{
		{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
		{stepRead, visit{Worker: 1, Token: 10}, nil},
	})
	s.crashed(1)
	play(t, s, []step{
		{stepEnter, visit{Worker: 2, Token: 11, Until: good}, nil},
		{stepWrite, visit{Worker: 1, Token: 10, Value: 1}, fence.ErrStale}, // the new holder has not even read yet
		{stepRead, visit{Worker: 1, Token: 10}, fence.ErrStale},
		{stepRead, visit{Worker: 2, Token: 11}, nil},
		{stepWrite, visit{Worker: 2, Token: 11, Value: 1}, nil},
		{stepWrite, visit{Worker: 1, Token: 10, Value: 1}, fence.ErrStale},
		{stepWrite, visit{Worker: 1, Token: 10, Value: 2}, fence.ErrStale}, // though the value would fit
	})
	got, err := s.check(2, 1, 1)
	require.NoError(t, err)
	require.Equal(t, 1, got.value)
}

func TestStoreDoesNotBlameAWorkerWhoseHoldHasRunOut(t *testing.T) {
	s := newStore()
	play(t, s, []step{
		{stepEnter, visit{Worker: 1, Token: 10, Until: time.Now().Add(-time.Nanosecond)}, nil},
		{stepEnter, visit{Worker: 2, Token: 11, Until: good}, nil},
		{stepRead, visit{Worker: 1, Token: 10}, fence.ErrStale},
		{stepLeave, visit{Worker: 1, Token: 10}, nil},
		{stepEnter, visit{Worker: 3, Token: 12, Until: good}, errOverlap}, // worker 2 is inside
	})
}

func TestStoreCountsTheDeadAsGoneOnlyWhenTold(t *testing.T) {
	s := newStore()
	play(t, s, []step{
		{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil},
		{stepEnter, visit{Worker: 2, Token: 11, Until: good}, errOverlap},
	})
	s = newStore()
	play(t, s, []step{{stepEnter, visit{Worker: 1, Token: 10, Until: good}, nil}})
	s.crashed(2)
	play(t, s, []step{{stepEnter, visit{Worker: 2, Token: 11, Until: good}, errOverlap}})
}

func TestStoreNoticesAtTheEndThatWritesAreMissing(t *testing.T) {
	s := newStore()
	play(t, s, turn(1, 10, 1))
	_, err := s.check(2, 1, 0)
	require.ErrorContains(t, err, "worker 2 wrote 0 times, not 1")
	_, err = s.check(2, 1, 2)
	require.NoError(t, err)
	s.value = 0 // an update undone behind the store's back
	_, err = s.check(2, 1, 2)
	require.ErrorIs(t, err, errLostUpdate)
}

func TestStoreThroughHTTP(t *testing.T) {
	s := newStore()
	listener, url, err := child.Listen()
	require.NoError(t, err)
	defer child.Serve(listener, s.apply)()
	remote := newRemoteStore(url)
	do := func(step string, v visit) (answer, error) { return remote.Do(context.Background(), step, v) }

	_, err = do(stepEnter, visit{Worker: 1, Token: 10})
	require.NoError(t, err)
	a, err := do(stepWrite, visit{Worker: 1, Token: 10, Value: 1})
	require.NoError(t, err)
	require.Equal(t, answer{Value: 1, Written: 1, Turn: 1}, a)

	_, err = do(stepWrite, visit{Worker: 1, Token: 9, Value: 2})
	require.ErrorIs(t, err, fence.ErrStale)
	require.True(t, isLost(err))
	require.ErrorContains(t, err, "it is 9, and 10 has been here")

	_, err = do(stepWrite, visit{Worker: 1, Token: 10, Value: 7})
	require.NotErrorIs(t, err, fence.ErrStale)
	require.False(t, isLost(err))
	require.ErrorContains(t, err, errLostUpdate.Error())

	_, err = do("dance", visit{})
	require.ErrorContains(t, err, `no such step: "dance"`)
}
