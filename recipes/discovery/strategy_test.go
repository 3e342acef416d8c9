package discovery_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
)

func instances(names ...string) (all []*discovery.Instance) {
	for _, id := range names {
		i := orders(id)
		all = append(all, &i)
	}
	return all
}

func picks(s discovery.Strategy, from []*discovery.Instance, times int) map[string]int {
	count := map[string]int{}
	for range times {
		count[s(from).ID]++
	}
	return count
}

func TestRoundRobinPicksAllEqually(t *testing.T) {
	s := discovery.RoundRobin()
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, picks(s, instances("a", "b", "c"), 6))
	require.Equal(t, map[string]int{"a": 3}, picks(s, instances("a"), 3))
}

func TestRandomPicksAll(t *testing.T) {
	require.Len(t, picks(discovery.Random(), instances("a", "b", "c"), 1000), 3)
}

// The goroutines all call the other strategy before one of them has picked.
func TestStickyPicksTheSameForAllGoroutines(t *testing.T) {
	const goroutines = 10
	var next atomic.Int64
	var inside sync.WaitGroup
	inside.Add(goroutines)
	s := discovery.Sticky(func(all []*discovery.Instance) *discovery.Instance {
		inside.Done()
		inside.Wait()
		return all[next.Add(1)%2]
	})
	all := instances("a", "b")
	picked := make(chan string, goroutines)
	for range goroutines {
		go func() { picked <- s(all).ID }()
	}
	first := <-picked
	for range goroutines - 1 {
		require.Equal(t, first, <-picked)
	}
}

func TestStickyPicksTheSame(t *testing.T) {
	s := discovery.Sticky(discovery.RoundRobin())
	require.Len(t, picks(s, instances("a", "b"), 10), 1)
	all := instances("a", "b")
	first := s(all)
	updated := *first
	updated.Port = 9090
	require.Same(t, &updated, s([]*discovery.Instance{&updated, all[0], all[1]}))
	require.Equal(t, "c", s(instances("c")).ID)
	require.Equal(t, "c", s(instances("a", "b", "c")).ID)

	last := func(all []*discovery.Instance) *discovery.Instance { return all[len(all)-1] }
	other := discovery.Sticky(last)
	require.Equal(t, "c", other(instances("c")).ID)
	require.Equal(t, "c", other(instances("c", "d")).ID)
	restarted := instances("c", "d")
	restarted[0].Registered = at(1)
	require.Equal(t, "d", other(restarted).ID, "an instance that is registered again is another one")
}

func TestStrategyThatPicksNothingIsAnError(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	r := newRegistry(t, c, base)
	register(t, r, orders("a"))
	v := watch(t, r)
	none := func([]*discovery.Instance) *discovery.Instance { return nil }
	for name, s := range map[string]discovery.Strategy{"own": none, "sticky": discovery.Sticky(none)} {
		got, err := newProvider(t, v, discovery.WithStrategy(s)).Pick(t.Context())
		require.Nil(t, got, name)
		require.ErrorIs(t, err, discovery.ErrNoInstance, name)
		require.ErrorContains(t, err, "strategy", name)
	}
}

// Two instances with one ID, registered in the same millisecond.
func TestFailureIsOfOneNode(t *testing.T) {
	c, base := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	r := newRegistry(t, c, base)
	for _, port := range []int{1, 2} {
		i := orders("a")
		i.Type, i.Port, i.Registered = discovery.DynamicSequential, port, at(1234)
		register(t, r, i)
	}
	v := watch(t, r)
	first := discovery.WithStrategy(func(all []*discovery.Instance) *discovery.Instance { return all[0] })
	p := newProvider(t, v, first, discovery.WithFailures(1, time.Hour))
	failed, err := p.Pick(t.Context())
	require.NoError(t, err)
	p.Fail(failed)
	other, err := p.Pick(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, failed.Port, other.Port)

	sticky := discovery.Sticky(func(all []*discovery.Instance) *discovery.Instance { return all[1] })
	require.Equal(t, sticky(v.Instances()), sticky(v.Instances()))
}
