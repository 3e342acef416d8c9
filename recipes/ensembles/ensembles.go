package ensembles

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
)

// Ensemble is one of the ensembles of a Set.
type Ensemble struct {
	// Name stands for the ensemble in the hash of each lock's name, and in errors. All programs must
	// give the ensemble the same name, whatever its addresses are. It has no zero byte.
	Name string
	// Client is connected to the ensemble. The caller closes it.
	Client *framework.Client
}

// Set is several ensembles, over which locks are spread by their names. It has no state and is safe
// for concurrent use. Curator has no counterpart.
type Set struct {
	present, previous []Ensemble // previous is empty unless the set is being changed
}

// Option configures a Set.
type Option func(*config) error

type config struct{ previous []Ensemble }

// WithPrevious changes the set from the given ensembles while programs run: the lock of a name whose
// ensemble changes is held on both. So it excludes programs with the previous set, and programs with
// the new one. See "Changing the set" in the documentation of the package. An ensemble of both sets
// must have the same name and the same client in both.
func WithPrevious(ensembles ...Ensemble) Option {
	return func(c *config) error {
		if err := checkAll(ensembles); err != nil {
			return fmt.Errorf("WithPrevious: %w", err)
		}
		c.previous = slices.Clone(ensembles)
		return nil
	}
}

// New returns a set of ensembles. Their order does not matter. New makes no request. It returns an
// error for an empty list, an ensemble without a name, a name with a zero byte or given twice, a nil or
// unusable client, and a client that is given twice.
func New(ensembles []Ensemble, opts ...Option) (*Set, error) {
	s, err := newSet(ensembles, opts)
	if err != nil {
		return nil, fmt.Errorf("new set of ensembles: %w", err)
	}
	return s, nil
}

func newSet(ensembles []Ensemble, opts []Option) (*Set, error) {
	if err := checkAll(ensembles); err != nil {
		return nil, err
	}
	var cfg config
	if err := option.Apply(&cfg, opts); err != nil {
		return nil, err
	}
	for _, e := range ensembles {
		for _, p := range cfg.previous {
			if (e.Name == p.Name) != (e.key() == p.key()) {
				return nil, fmt.Errorf("WithPrevious: ensembles %q and %q: want the same name and the same client, "+
					"or another name and another client", p.Name, e.Name)
			}
		}
	}
	return &Set{slices.Clone(ensembles), cfg.previous}, nil
}

func checkAll(ensembles []Ensemble) error {
	if len(ensembles) == 0 {
		return errors.New("no ensembles")
	}
	for i, e := range ensembles {
		if err := e.check(); err != nil {
			return fmt.Errorf("ensemble %d: %w", i, err)
		}
		for j, other := range ensembles[:i] {
			switch {
			case e.Name == other.Name:
				return fmt.Errorf("ensembles %d and %d have the same name %q", j, i, e.Name)
			case e.key() == other.key():
				return fmt.Errorf("ensembles %q and %q have the same client", other.Name, e.Name)
			}
		}
	}
	return nil
}

func (e Ensemble) check() error {
	switch {
	case e.Name == "":
		return errors.New("it has no name")
	case strings.Contains(e.Name, "\x00"):
		return fmt.Errorf("name %q has a zero byte", e.Name)
	}
	if err := bridge.Of(e.Client).Validate(); err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	return nil
}

// key is equal for clients that give a path the same node.
func (e Ensemble) key() any { return bridge.Of(e.Client).Key("/") }

// weight is the weight of an ensemble for a name.
func (e Ensemble) weight(name string) uint64 {
	hash := sha256.Sum256([]byte(e.Name + "\x00" + name))
	return binary.BigEndian.Uint64(hash[:8])
}

// choose returns the ensemble of a name.
func choose(ensembles []Ensemble, name string) Ensemble {
	chosen, largest := ensembles[0], ensembles[0].weight(name)
	for _, e := range ensembles[1:] {
		if w := e.weight(name); w > largest || w == largest && e.Name < chosen.Name {
			chosen, largest = e, w
		}
	}
	return chosen
}

// Client returns the client of a name's ensemble, and nil for the zero value. It is for data. Use Lock
// for a lock, because that is held on a second ensemble while the set is changed.
func (s *Set) Client(name string) *framework.Client {
	if len(s.present) == 0 {
		return nil
	}
	return choose(s.present, name).Client
}

// Of returns the ensembles on which the lock of a name is held, in the order in which they are
// acquired. It is one, and two for a name that moves while the set is changed. It returns nil for the
// zero value.
func (s *Set) Of(name string) []Ensemble {
	if len(s.present) == 0 {
		return nil
	}
	all := []Ensemble{choose(s.present, name)}
	if len(s.previous) > 0 {
		if before := choose(s.previous, name); before.Name != all[0].Name {
			all = append(all, before)
		}
	}
	slices.SortFunc(all, func(a, b Ensemble) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lock returns the lock of a name. It calls newLock for the client of each ensemble of Of, and
// newLock returns the lock on that ensemble, such as a mutex with a path made of the name. All
// programs must make the same lock of a name. Lock makes no request. It returns the error of newLock,
// and an error if newLock is nil, or returns nil.
func (s *Set) Lock(name string, newLock func(c *framework.Client) (recipes.Locker, error)) (*Lock, error) {
	l, err := s.lock(name, newLock)
	if err != nil {
		return nil, fmt.Errorf("lock of %q: %w", name, err)
	}
	return l, nil
}

func (s *Set) lock(name string, newLock func(c *framework.Client) (recipes.Locker, error)) (*Lock, error) {
	switch {
	case len(s.present) == 0:
		return nil, fmt.Errorf("%w: ensembles.Set", framework.ErrZeroValue)
	case newLock == nil:
		return nil, errors.New("nil function")
	}
	var parts []recipes.Locker
	for _, e := range s.Of(name) {
		one, err := newLock(e.Client)
		if err == nil && one == nil {
			err = errors.New("the function returned neither a lock nor an error")
		}
		if err != nil {
			return nil, fmt.Errorf("ensemble %q: %w", e.Name, err)
		}
		parts = append(parts, part{e.Name, one})
	}
	if len(parts) == 1 {
		return &Lock{parts[0]}, nil
	}
	both, err := multilock.Combine(parts...)
	return &Lock{both}, err
}
