package ensembles_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/internal/contracttest"
	"github.com/docent-zk/docent/recipes/mutex"
)

// several returns ensembles with these names. Each is a namespace of the servers of the test.
func several(t testing.TB, names ...string) (all []ensembles.Ensemble) {
	t.Helper()
	c := testzk.Client(t, testzk.Connect())
	for _, name := range names {
		all = append(all, ensembles.Ensemble{Name: name, Client: c.Namespace(testzk.Path(t)[1:] + "/" + name)})
	}
	return all
}

func newSet(t testing.TB, all []ensembles.Ensemble, opts ...ensembles.Option) *ensembles.Set {
	t.Helper()
	s, err := ensembles.New(all, opts...)
	require.NoError(t, err)
	return s
}

func lockOf(t testing.TB, s *ensembles.Set, name string) *ensembles.Lock {
	t.Helper()
	l, err := s.Lock(name, order(name))
	require.NoError(t, err)
	return l
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}

// namesOf returns the names of ensembles.
func namesOf(all []ensembles.Ensemble) (names []string) {
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

func TestErrorsNameTheValue(t *testing.T) {
	all := several(t, "a", "b")
	a, b := all[0], all[1]
	list := func(all ...ensembles.Ensemble) []ensembles.Ensemble { return all }
	type options []ensembles.Option
	const both = "want the same name and the same client"
	for name, row := range map[string]struct {
		ensembles []ensembles.Ensemble
		opts      options
		says      string
		is        error
	}{
		"no ensembles": {nil, nil, "no ensembles", nil},
		"no name":      {list(a, ensembles.Ensemble{Client: b.Client}), nil, "ensemble 1: it has no name", nil},
		"zero byte": {list(ensembles.Ensemble{Name: "a\x00", Client: a.Client}), nil,
			`ensemble 0: name "a\x00" has a zero byte`, nil},
		"nil client": {list(a, ensembles.Ensemble{Name: "b"}), nil, `ensemble 1: "b": framework: client is nil`, nil},
		"zero client": {list(ensembles.Ensemble{Name: "a", Client: &framework.Client{}}), nil, `"a"`,
			framework.ErrZeroValue},
		"equal names": {list(a, b, a), nil, `ensembles 0 and 2 have the same name "a"`, nil},
		"equal client": {list(a, ensembles.Ensemble{"c", a.Client}), nil,
			`ensembles "a" and "c" have the same client`, nil},
		"nil option":  {all, options{nil}, "option 0 is nil", nil},
		"no previous": {all, options{ensembles.WithPrevious()}, "WithPrevious: no ensembles", nil},
		"another client before": {all, options{ensembles.WithPrevious(ensembles.Ensemble{"c", a.Client})},
			`WithPrevious: ensembles "c" and "a": ` + both, nil},
		"another name before": {all[:1], options{ensembles.WithPrevious(ensembles.Ensemble{"a", b.Client})},
			`WithPrevious: ensembles "a" and "a": ` + both, nil},
	} {
		s, err := ensembles.New(row.ensembles, row.opts...)
		require.Nil(t, s, name)
		require.ErrorContains(t, err, "new set of ensembles: ", name)
		require.ErrorContains(t, err, row.says, name)
		if row.is != nil {
			require.ErrorIs(t, err, row.is, name)
		}
	}
}

func TestLockNeedsALockOfEachEnsemble(t *testing.T) {
	all := several(t, "a", "b", "c", "d")
	s := newSet(t, all, ensembles.WithPrevious(all[:3]...))
	broken := errors.New("broken")
	type newLock = func(*framework.Client) (recipes.Locker, error)
	returns := func(err error) newLock {
		return func(*framework.Client) (recipes.Locker, error) { return nil, err }
	}
	for name, row := range map[string]struct {
		newLock newLock
		says    string
	}{
		"nil function": {nil, "nil function"},
		"nothing":      {returns(nil), "neither a lock nor an error"},
		"an error":     {returns(broken), `ensemble "b": broken`},
	} {
		l, err := s.Lock("order-17", row.newLock)
		require.Nil(t, l, name)
		require.ErrorContains(t, err, `lock of "order-17": `, name)
		require.ErrorContains(t, err, row.says, name)
	}
}

// The ensembles of names are part of what programs agree on. They must never change. The expected ones
// were computed in Python, by the rule in the documentation of the package.
func TestEnsembleOfANameNeverChanges(t *testing.T) {
	all := several(t, "d", "b", "a", "c") // in any order
	four, three := newSet(t, all), newSet(t, all[1:])
	for name, want := range map[string][2]string{
		"": {"a", "a"}, "order-17": {"b", "d"}, "ключ": {"b", "b"}, "/locks/x": {"a", "d"}, "k0": {"a", "a"},
		"k2": {"a", "d"},
	} {
		require.Equal(t, want[:1], namesOf(three.Of(name)), name)
		require.Equal(t, want[1:], namesOf(four.Of(name)), name)
		require.Same(t, four.Of(name)[0].Client, four.Client(name))
	}
}

// letters returns the names of so many ensembles, of at most 26.
func letters(n int) (names []string) {
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

const (
	manyNames = 100_000
	deviation = 5 // standard deviations that a share of the names may differ from the expected one
)

// requireShare checks that a number of names is what equal chances give.
func requireShare(t *testing.T, count, of int, chance float64, what string) {
	t.Helper()
	expected := float64(of) * chance
	require.InDelta(t, expected, count, deviation*math.Sqrt(expected*(1-chance)), what)
}

func TestNamesAreBalanced(t *testing.T) {
	s := newSet(t, several(t, letters(10)...))
	count := map[string]int{}
	for i := range manyNames {
		count[s.Of(fmt.Sprint("/locks/order-", i))[0].Name]++
	}
	require.Len(t, count, 10)
	for name, n := range count {
		requireShare(t, n, manyNames, 1.0/10, name)
	}
}

func TestOnlyTheNamesOfTheNewEnsembleMove(t *testing.T) {
	all := several(t, letters(11)...)
	ten, eleven := newSet(t, all[:10]), newSet(t, all)
	added := newSet(t, all, ensembles.WithPrevious(all[:10]...))
	removed := newSet(t, all[:10], ensembles.WithPrevious(all...))
	moved, from := 0, map[string]int{}
	for i := range manyNames {
		name := fmt.Sprint("order-", i)
		before, after := ten.Of(name)[0].Name, eleven.Of(name)[0].Name
		want := []string{before}
		if before != after {
			require.Equal(t, "k", after)
			want = append(want, after)
			moved++
			from[before]++
		}
		require.Equal(t, want, namesOf(added.Of(name)))
		require.Equal(t, want, namesOf(removed.Of(name)), "the order is the same in both directions")
		require.Same(t, eleven.Client(name), added.Client(name))
		require.Same(t, ten.Client(name), removed.Client(name))
	}
	requireShare(t, moved, manyNames, 1.0/11, "moved")
	for name, n := range from {
		requireShare(t, n, moved, 1.0/10, "moved from "+name)
	}
}

// moving returns a name that moves when the last ensemble is added.
func moving(t testing.TB, all []ensembles.Ensemble) string {
	t.Helper()
	before, after := newSet(t, all[:len(all)-1]), newSet(t, all)
	for i := 0; ; i++ {
		if name := fmt.Sprint("order-", i); before.Client(name) != after.Client(name) {
			return name
		}
	}
}

func TestBothExcludesTheOldAndTheNewSet(t *testing.T) {
	t.Parallel()
	all := several(t, "a", "b", "c")
	name := moving(t, all)
	old, both := newSet(t, all[:2]), newSet(t, all, ensembles.WithPrevious(all[:2]...))
	sets := []*ensembles.Set{old, both, newSet(t, all)}
	hold := acquire(t, lockOf(t, both, name))
	require.Len(t, hold.Tokens(), 2)
	require.Zero(t, hold.Token())
	for i, e := range both.Of(name) {
		stat, err := e.Client.Exists(testzk.Context(t), hold.Paths()[i])
		require.NoError(t, err)
		require.NotNil(t, stat, "the node is not on ensemble %s", e.Name)
		require.Equal(t, stat.Czxid, hold.Tokens()[i])
	}
	for _, s := range sets {
		_, err := lockOf(t, s, name).TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.ErrorContains(t, err, "ensemble ")
	}
	require.NoError(t, hold.Release())
	for _, s := range sets {
		hold := acquire(t, lockOf(t, s, name))
		_, err := lockOf(t, both, name).AcquireWithin(testzk.Context(t), 0)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Release())
	}
	done := false
	require.NoError(t, lockOf(t, both, name).Do(testzk.Context(t), func(context.Context, *recipes.Hold) error {
		done = true
		return nil
	}))
	require.True(t, done)
}

// Without the step between, programs of two sets do not exclude each other.
func TestWithoutTheStepBetweenThereAreTwoHolders(t *testing.T) {
	t.Parallel()
	all := several(t, "a", "b", "c")
	name := moving(t, all)
	first := acquire(t, lockOf(t, newSet(t, all[:2]), name))
	second := acquire(t, lockOf(t, newSet(t, all), name))
	require.NoError(t, first.Err())
	require.NoError(t, second.Err())
	require.NoError(t, first.Release())
	require.NoError(t, second.Release())
}

func newMutex(path string) func(*framework.Client) (recipes.Locker, error) {
	return func(c *framework.Client) (recipes.Locker, error) { return mutex.New(c, path) }
}

var locks = contracttest.Kinds{
	"plain": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			l, err := newSet(t, []ensembles.Ensemble{{Name: "a", Client: c}}).Lock("order-17", newMutex(path))
			require.NoError(t, err)
			return l
		},
		Reenters: true,
	},
	// One of the ensembles of a change is a namespace of the other, so that the suite finds all nodes.
	"during a change": {
		New: func(t testing.TB, c *framework.Client, path string) contracttest.Lock {
			before, after := ensembles.Ensemble{"a", c}, ensembles.Ensemble{"b", c.Namespace(path[1:] + "/b")}
			s := newSet(t, []ensembles.Ensemble{after}, ensembles.WithPrevious(before))
			l, err := s.Lock("order-17", func(of *framework.Client) (recipes.Locker, error) {
				if of == after.Client {
					return mutex.New(of, "/lock")
				}
				return mutex.New(of, path+"/a")
			})
			require.NoError(t, err)
			return l
		},
		Dirs:     func(path string) []string { return []string{path + "/a", path + "/b/lock"} },
		Reenters: true,
	},
}

func TestContract(t *testing.T)          { locks.Run(t) }
func TestSimulatedContract(t *testing.T) { locks.Simulate(t) }
