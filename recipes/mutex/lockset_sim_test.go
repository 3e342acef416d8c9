package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// resource has a set. Holders of the lock read it, add an element and write all of it.
type resource interface {
	read(hold *recipes.Hold) (string, error)
	write(hold *recipes.Hold, all string) error
}

// memory is a resource that is no part of ZooKeeper.
type memory struct {
	readToken, writeToken bool // whether a request has the token of its hold

	mu      sync.Mutex
	all     string
	fencing fence.Register
	history history.Recorder
}

func (m *memory) read(hold *recipes.Hold) (all string, err error) {
	call := m.history.Call()
	token, err := m.serve(m.readToken, hold, func() { all = m.all })
	if err == nil {
		m.history.Return(call, history.Read{Token: token, Value: all})
	}
	return all, err
}

func (m *memory) write(hold *recipes.Hold, all string) error {
	call := m.history.Call()
	token, err := m.serve(m.writeToken, hold, func() { m.all = all })
	m.history.Return(call, history.Write{Token: token, Value: all, Refused: err != nil})
	return err
}

// serve carries out a request, and returns the token that was compared.
func (m *memory) serve(fenced bool, hold *recipes.Hold, do func()) (token int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !fenced {
		do()
		return 0, nil
	}
	return hold.Token(), m.fencing.Do(hold.Token(), func() error {
		do()
		return nil
	})
}

// guarded is a resource in ZooKeeper, at setPath. Its writes are transactions of the hold.
type guarded struct{ client *framework.Client }

const setPath = "/set"

func (g guarded) read(*recipes.Hold) (string, error) {
	data, _, err := g.client.Get(context.Background(), setPath)
	return string(data), err
}

func (g guarded) write(hold *recipes.Hold, all string) error {
	_, err := hold.Guard(context.Background(), framework.SetOp(setPath, []byte(all), -1))
	return err
}

// inserter adds elements to a set.
type inserter struct {
	lock    *contender
	set     resource
	history *history.Recorder
}

// insert adds an element under the lock. It looks at the hold before it writes, and calls pause after
// that look. It records the element unless the write was refused.
func (i inserter) insert(element string, pause func()) {
	hold, err := i.lock.lock.Acquire(context.Background())
	if err != nil {
		return
	}
	defer func() { _ = hold.Release() }()
	call := i.history.Call()
	all, err := i.set.read(hold)
	if err != nil {
		return
	}
	i.history.Return(call, history.Elements{All: strings.Fields(all)})
	if hold.Err() != nil {
		return
	}
	pause()
	call = i.history.Call()
	err = i.set.write(hold, strings.TrimSpace(all+" "+element))
	switch {
	case err == nil:
		i.history.Return(call, history.Insert{Element: element})
	case errors.Is(err, fence.ErrStale):
	case framework.OutcomeOf(err) == framework.Unknown:
		i.history.Unknown(call, history.Insert{Element: element})
	}
}

// lockSet is a set and the programs that insert into it.
type lockSet struct {
	srv      *zktest.Server
	memory   *memory // nil for a set in ZooKeeper
	history  history.Recorder
	programs []inserter
}

func newLockSet(t *testing.T, srv *zktest.Server, random *rand.Rand, m *memory, programs int) *lockSet {
	t.Helper()
	require.NoError(t, srv.Create(setPath, nil))
	s := &lockSet{srv: srv, memory: m}
	for n := range programs {
		c := &contender{t: t, name: fmt.Sprintf("c%d", n), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		c.connect(srv, srv.MemAddr(), simTimeout)
		c.lock = newMutex(t, c.client, "/lock")
		var set resource = guarded{c.client}
		if m != nil {
			set = m
		}
		s.programs = append(s.programs, inserter{c, set, &s.history})
	}
	return s
}

// freeze stops a program for a time. Its client gets no answers meanwhile.
func (s *lockSet) freeze(n int, d time.Duration) {
	link := s.srv.Client(fmt.Sprintf("c%d", n))
	link.Freeze()
	time.Sleep(d)
	link.Thaw()
}

// check returns an error if an element was lost that had been inserted, or one is there that had been
// refused. It checks the tokens that the resource has compared, too.
func (s *lockSet) check(t *testing.T) error {
	t.Helper()
	call, all := s.history.Call(), ""
	if s.memory != nil {
		all = s.memory.all
		require.NoError(t, s.memory.history.Check(history.Register{}))
	} else {
		data, err := s.srv.Get(setPath)
		require.NoError(t, err)
		all = string(data)
	}
	s.history.Return(call, history.Elements{All: strings.Fields(all)})
	return s.history.Check(history.Set{})
}

// The first program is paused after it has looked at its hold, just before it writes. Its session
// expires, and the second program inserts an element. Then the first one goes on. The late write loses
// the element of the second program, unless tokens or Guard refuse it.
//
// Tokens of writes alone are not enough. If the second program has read the set and not written yet,
// the resource has seen no larger token. So reads need the token, too.
func TestPausedHolderLosesAnUpdateWithoutTokensOrGuard(t *testing.T) {
	const asleep = 5 * simTimeout
	for name, example := range map[string]struct {
		memory *memory
		slow   time.Duration // of the second program, between its read and its write
		want   string        // that the history says; empty if it is right
	}{
		"no tokens":                    {&memory{}, 0, "[c0] was read from a set of [c0 c1]"},
		"tokens of writes":             {&memory{writeToken: true}, 0, ""},
		"tokens of writes, slow":       {&memory{writeToken: true}, asleep, "[c1] was read from a set of [c0 c1]"},
		"tokens of all requests":       {&memory{readToken: true, writeToken: true}, 0, ""},
		"tokens of all requests, slow": {&memory{readToken: true, writeToken: true}, asleep, ""},
		"Guard":                        {nil, 0, ""},
		"Guard, slow":                  {nil, asleep, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir()) // of the drawings
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				s := newLockSet(t, srv, random, example.memory, 2)
				var running sync.WaitGroup
				reading := make(chan struct{})
				running.Go(func() {
					s.programs[0].insert("c0", func() {
						close(reading)
						s.freeze(0, asleep)
					})
				})
				<-reading
				running.Go(func() { s.programs[1].insert("c1", func() { time.Sleep(example.slow) }) })
				running.Wait()
				err := s.check(t)
				if example.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, example.want)
			})
		})
	}
}

// Programs insert into a set while connections and sessions fail and programs are paused just before
// they write. The resource compares the tokens of all requests, or the writes are guarded transactions.
// No element is lost that was inserted, and none is there that was refused.
func TestSimulatedLockSet(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpGetChildren2, fault.OpGetData, fault.OpDelete,
		fault.OpConnect, fault.AnyOp)
	const each = 5
	for name, fenced := range map[string]bool{"fenced": true, "guarded": false} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				var m *memory
				if fenced {
					m = &memory{readToken: true, writeToken: true}
				}
				s := newLockSet(t, srv, random, m, contenders)
				var running sync.WaitGroup
				for n, p := range s.programs {
					own := rand.New(rand.NewPCG(random.Uint64(), 0))
					running.Go(func() {
						for i := range each {
							p.insert(fmt.Sprintf("c%d.%d", n, i), func() {
								if own.IntN(3) == 0 {
									s.freeze(n, p.lock.upTo(3*simTimeout))
								}
							})
						}
					})
				}
				harm(t, srv, random, aim, testlock.NewModel(t, srv), contenders)
				running.Wait()
				require.NoError(t, s.check(t))
			}, keepsParents)
		})
	}
}
