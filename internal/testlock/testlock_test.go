package testlock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

// strikes makes faults at a client that reads the root all the time.
func strikes(t *testing.T, faults int, ops ...fault.Op) []string {
	r := &recorder{TB: t}
	aim := testlock.NewAim(r, ops...)
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		link := srv.Client("c")
		client := testlock.Client(t, link, srv.MemAddr(), random, 4*time.Second)
		strikes := aim.Faults(t, srv, random, 4*time.Second)
		for range faults {
			_, _, err := client.Children(t.Context(), "/")
			require.NoError(t, err)
			time.Sleep(strikes.Strike(link))
		}
	})
	r.end()
	return r.failures
}

func TestStaleAimFails(t *testing.T) {
	require.Empty(t, strikes(t, 100, fault.OpGetChildren2, fault.OpConnect, fault.AnyOp))
	require.Equal(t, []string{"faults are aimed at setACL requests, and no client sends them"},
		strikes(t, 100, fault.OpGetChildren2, fault.OpSetACL))
	require.Empty(t, strikes(t, 3, fault.OpGetChildren2, fault.OpSetACL), "too few faults")
}

// begun returns what a model reports of the uses that begin.
func begun(t *testing.T, uses ...testlock.Use) []string {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawings
	r := &recorder{TB: t}
	model := testlock.NewModel(r, zktest.Start(t))
	for _, u := range uses {
		model.Begin(u)
	}
	r.end()
	return r.failures
}

func TestModelFindsTwoHolders(t *testing.T) {
	valid, ended := func() error { return nil }, func() error { return errors.New("ended") }
	writes := func(by any, token int64) testlock.Use { return testlock.Use{By: by, Token: token, Err: valid} }
	reads := func(by any, token int64) testlock.Use {
		return testlock.Use{By: by, Token: token, Err: valid, Shared: true}
	}
	elsewhere, beside := writes(nil, 2), writes("a", 1)
	elsewhere.Lock, beside.Beside = "/other", true
	lost := func(token int64) testlock.Use { return testlock.Use{Token: token, Err: ended} }
	for name, test := range map[string]struct {
		first, second testlock.Use
		failures      int
	}{
		"two":                     {writes(nil, 1), writes(nil, 2), 1},
		"of two locks":            {writes(nil, 1), elsewhere, 0},
		"the first has ended":     {lost(1), writes(nil, 2), 0},
		"the second has ended":    {writes(nil, 1), lost(2), 0},
		"two readers":             {reads(nil, 1), reads(nil, 2), 0},
		"reader and writer":       {reads(nil, 1), writes(nil, 2), 1},
		"of one member":           {writes("a", 1), reads("a", 1), 0},
		"of two members":          {writes("a", 1), reads("b", 2), 1},
		"beside":                  {reads("a", 1), beside, 0},
		"writer below its reader": {reads("a", 2), writes("a", 1), 1},
	} {
		require.Len(t, begun(t, test.first, test.second), test.failures, name)
	}
}

// once returns nil at its first calls, so that a use is valid when it begins, and ended later.
func once(calls int) func() error {
	return func() error {
		if calls--; calls < 0 {
			return errors.New("ended")
		}
		return nil
	}
}

func TestModelFindsTokensThatDoNotGrow(t *testing.T) {
	first := func(by any) testlock.Use { return testlock.Use{By: by, Token: 2, Err: once(1)} }
	next := func(by any, token int64) testlock.Use { return testlock.Use{By: by, Token: token, Err: once(1)} }
	require.Len(t, begun(t, first(nil), next(nil, 2)), 1)
	require.Len(t, begun(t, first(nil), next(nil, 1)), 1)
	require.Empty(t, begun(t, first(nil), next(nil, 3)))
	require.Empty(t, begun(t, first("a"), next("a", 2)))
}

func TestModelKnowsTheNodesThatTheTestDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		link := srv.Client("c")
		client := testlock.Client(t, link, srv.MemAddr(), random, 4*time.Second)
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.Create("/lock", nil))
		model := testlock.NewModel(t, srv)
		use := func(name string) testlock.Use {
			_, err := session.Create(t.Context(), "/lock/"+name, nil, framework.Ephemeral())
			require.NoError(t, err)
			return testlock.Use{
				Lock: name, Nodes: []string{"/lock/" + name}, Token: 1, Err: func() error { return nil },
			}
		}
		first := use("first")
		require.True(t, model.Begin(first))
		model.DeleteNode(random, "/lock")
		require.Zero(t, model.Valids())
		second := use("second")
		require.True(t, model.Begin(second))
		require.Equal(t, 1, model.Valids())
		model.Expire(link)
		require.False(t, model.Begin(second))
		require.Zero(t, model.Valids())
	})
}
