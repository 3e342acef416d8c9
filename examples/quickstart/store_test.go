package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/fence"
)

// future is the deadline of a valid hold.
var future = time.Now().Add(time.Hour)

// step is one step and the error that the store must return.
type step struct {
	name string
	request
	want error
}

// apply applies steps and checks the errors.
func apply(t *testing.T, s *store, steps []step) {
	t.Helper()
	for i, st := range steps {
		_, err := s.apply(st.name, st.request)
		if st.want == nil {
			require.NoError(t, err, "step %d: %+v", i, st)
			continue
		}
		require.ErrorIs(t, err, st.want, "step %d: %+v", i, st)
	}
}

func turn(worker int, token int64, value int) []step {
	return []step{
		{stepEnter, request{Worker: worker, Token: token, Until: future}, nil},
		{stepRead, request{Worker: worker, Token: token}, nil},
		{stepWrite, request{Worker: worker, Token: token, Value: value}, nil},
		{stepLeave, request{Worker: worker, Token: token}, nil},
	}
}

func TestStoreAcceptsGoodTurns(t *testing.T) {
	s := newStore()
	apply(t, s, turn(1, 10, 1))
	apply(t, s, turn(2, 11, 2))
	apply(t, s, turn(1, 15, 3))
	got, err := s.conclude(3, 1, 3)
	require.ErrorContains(t, err, "worker 1 wrote 2 times, not 1")
	require.NotErrorIs(t, err, errLostUpdate)
	require.Equal(t, totals{value: 3, turns: 3, writes: 3, first: 10, newest: 15}, got)
}

func TestStoreFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		fault error
	}{
		"two workers at once": {[]step{
			{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
			{stepEnter, request{Worker: 2, Token: 11, Until: future}, errOverlap},
		}, errOverlap},
		"one worker twice at once": {[]step{
			{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
			{stepEnter, request{Worker: 1, Token: 11, Until: future}, errOverlap},
		}, errOverlap},
		"lost update": {append(turn(1, 10, 1),
			step{stepEnter, request{Worker: 2, Token: 11, Until: future}, nil},
			step{stepWrite, request{Worker: 2, Token: 11, Value: 1}, errLostUpdate},
		), errLostUpdate},
		"value that does not follow": {[]step{
			{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
			{stepWrite, request{Worker: 1, Token: 10, Value: 2}, errLostUpdate},
		}, errLostUpdate},
		"same token again": {append(turn(1, 10, 1),
			step{stepEnter, request{Worker: 2, Token: 10, Until: future}, errTokenOrder},
		), errTokenOrder},
		"smaller token": {append(turn(1, 10, 1),
			step{stepEnter, request{Worker: 2, Token: 9, Until: future}, errTokenOrder},
		), errTokenOrder},
		"no token": {[]step{
			{stepEnter, request{Worker: 1}, errTokenOrder},
		}, errTokenOrder},
		"write after leaving": {append(turn(1, 10, 1),
			step{stepWrite, request{Worker: 1, Token: 10, Value: 2}, errOutside},
		), errOutside},
		"write without entering": {[]step{
			{stepWrite, request{Worker: 1, Token: 10, Value: 1}, errOutside},
		}, errOutside},
		"read with the token of another worker": {[]step{
			{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
			{stepRead, request{Worker: 2, Token: 10}, errOutside},
		}, errOutside},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			apply(t, s, c.steps)
			_, err := s.conclude(0, 0, 0)
			require.ErrorIs(t, err, c.fault)
		})
	}
}

func TestStoreRefusesAnOldTokenWithoutAFault(t *testing.T) {
	s := newStore()
	apply(t, s, []step{
		{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
		{stepRead, request{Worker: 1, Token: 10}, nil},
	})
	s.crashed(1)
	apply(t, s, []step{
		{stepEnter, request{Worker: 2, Token: 11, Until: future}, nil},
		{stepWrite, request{Worker: 1, Token: 10, Value: 1}, fence.ErrStale}, // the new holder has not even read yet
		{stepRead, request{Worker: 1, Token: 10}, fence.ErrStale},
		{stepRead, request{Worker: 2, Token: 11}, nil},
		{stepWrite, request{Worker: 2, Token: 11, Value: 1}, nil},
		{stepWrite, request{Worker: 1, Token: 10, Value: 1}, fence.ErrStale},
		{stepWrite, request{Worker: 1, Token: 10, Value: 2}, fence.ErrStale}, // though the value would fit
	})
	got, err := s.conclude(2, 1, 1)
	require.NoError(t, err)
	require.Equal(t, 1, got.value)
}

func TestWorkerInsideAfterItsDeadlineIsNoFault(t *testing.T) {
	s := newStore()
	apply(t, s, []step{
		{stepEnter, request{Worker: 1, Token: 10, Until: time.Now().Add(-time.Nanosecond)}, nil},
		{stepEnter, request{Worker: 2, Token: 11, Until: future}, nil},
		{stepRead, request{Worker: 1, Token: 10}, fence.ErrStale},
		{stepLeave, request{Worker: 1, Token: 10}, nil},
		{stepEnter, request{Worker: 3, Token: 12, Until: future}, errOverlap}, // worker 2 is inside
	})
}

func TestStoreRemovesOnlyTheCrashedWorker(t *testing.T) {
	s := newStore()
	apply(t, s, []step{
		{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil},
		{stepEnter, request{Worker: 2, Token: 11, Until: future}, errOverlap},
	})
	s = newStore()
	apply(t, s, []step{{stepEnter, request{Worker: 1, Token: 10, Until: future}, nil}})
	s.crashed(2)
	apply(t, s, []step{{stepEnter, request{Worker: 2, Token: 11, Until: future}, errOverlap}})
}

func TestStoreDetectsMissingWritesAtTheEnd(t *testing.T) {
	s := newStore()
	apply(t, s, turn(1, 10, 1))
	_, err := s.conclude(2, 1, 0)
	require.ErrorContains(t, err, "worker 2 wrote 0 times, not 1")
	_, err = s.conclude(2, 1, 2)
	require.NoError(t, err)
	s.value = 0 // an update was undone
	_, err = s.conclude(2, 1, 2)
	require.ErrorIs(t, err, errLostUpdate)
}

func TestStoreThroughHTTP(t *testing.T) {
	s := newStore()
	listener, url, err := child.Listen()
	require.NoError(t, err)
	defer child.Serve(listener, s.apply)()
	remote := newRemoteStore(url)
	do := func(step string, q request) (answer, error) { return remote.Do(context.Background(), step, q) }

	_, err = do(stepEnter, request{Worker: 1, Token: 10})
	require.NoError(t, err)
	a, err := do(stepWrite, request{Worker: 1, Token: 10, Value: 1})
	require.NoError(t, err)
	require.Equal(t, answer{Value: 1, Written: 1, Turn: 1}, a)

	_, err = do(stepWrite, request{Worker: 1, Token: 9, Value: 2})
	require.ErrorIs(t, err, fence.ErrStale)
	require.True(t, isLost(err))
	require.ErrorContains(t, err, "it is 9, and 10 has been here")

	_, err = do(stepWrite, request{Worker: 1, Token: 10, Value: 7})
	require.NotErrorIs(t, err, fence.ErrStale)
	require.False(t, isLost(err))
	require.ErrorContains(t, err, errLostUpdate.Error())

	_, err = do("dance", request{})
	require.ErrorContains(t, err, `no such step: "dance"`)
}
