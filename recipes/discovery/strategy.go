package discovery

import (
	"math/rand/v2"
	"sync/atomic"
)

// A Strategy picks one of the instances, which are at least one, in the order of the names of their
// nodes. If it returns nil, Pick fails. It must not change the slice. Several goroutines may call
// it at the same time. A Strategy with a state is for one Provider. Curator: ProviderStrategy.
type Strategy func(instances []*Instance) *Instance

// RoundRobin returns a Strategy that picks one instance after the other, beginning with a random
// one. Curator: RoundRobinStrategy, which begins with the first.
func RoundRobin() Strategy {
	var next atomic.Uint64
	next.Store(uint64(rand.Uint32()))
	return func(instances []*Instance) *Instance {
		return instances[(next.Add(1)-1)%uint64(len(instances))]
	}
}

// Random returns a Strategy that picks a random instance. Curator: RandomStrategy.
func Random() Strategy {
	return func(instances []*Instance) *Instance { return instances[rand.IntN(len(instances))] }
}

// Sticky returns a Strategy that picks the same instance as long as it can be picked, and then
// another one by the given Strategy. An instance that is registered again is another one. Curator:
// StickyStrategy, which also picks another one after each update. If other is nil, Sticky returns
// nil, which WithStrategy refuses.
func Sticky(other Strategy) Strategy {
	if other == nil {
		return nil
	}
	var picked atomic.Pointer[key]
	return func(instances []*Instance) *Instance {
		was := picked.Load()
		if i := find(instances, was); i != nil {
			return i
		}
		i := other(instances)
		if i == nil {
			return nil
		}
		now := i.key()
		if !picked.CompareAndSwap(was, &now) { // another goroutine has picked
			if theirs := find(instances, picked.Load()); theirs != nil {
				return theirs
			}
		}
		return i
	}
}

// find returns the instance with the key, which may be nil.
func find(instances []*Instance, k *key) *Instance {
	for _, i := range instances {
		if k != nil && i.key() == *k {
			return i
		}
	}
	return nil
}
