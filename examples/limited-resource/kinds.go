package main

import (
	"math"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// access is one of the accesses to the resource that a kind of lock permits.
type access struct {
	lock  recipes.Locker
	alone bool // the lock promises that no other access is inside at the same time
}

// kind is a kind of lock. Its accesses exclude each other as the resource requires.
type kind struct {
	name     string
	room     int // how many accesses the resource permits at the same time
	accesses func(c *framework.Client, path string) ([]access, error)
}

func kinds() []kind {
	return []kind{
		{"mutex", 1, func(c *framework.Client, path string) ([]access, error) {
			return exclusive(mutex.New(c, path))
		}},
		{"rwlock", math.MaxInt, readWrite},
		{"semaphore", 3, func(c *framework.Client, path string) ([]access, error) {
			return shared(semaphore.New(c, path, 3))
		}},
		{"semaphore-mutex", 1, func(c *framework.Client, path string) ([]access, error) {
			return exclusive(semaphore.NewMutex(c, path))
		}},
		{"multilock", 1, inBothOrders},
	}
}

func exclusive(l recipes.Locker, err error) ([]access, error) { return []access{{l, true}}, err }
func shared(l recipes.Locker, err error) ([]access, error)    { return []access{{l, false}}, err }

// readWrite returns one write access and three read accesses.
func readWrite(c *framework.Client, path string) ([]access, error) {
	rw, err := rwlock.New(c, path)
	if err != nil {
		return nil, err
	}
	read, write := access{rw.Read(), false}, access{rw.Write(), true}
	return []access{write, read, read, read}, nil
}

// inBothOrders returns multi-locks of the same two locks, in both orders.
func inBothOrders(c *framework.Client, path string) ([]access, error) {
	a, b := path+"/a", path+"/b"
	ab, err := multilock.New(c, []string{a, b})
	if err != nil {
		return nil, err
	}
	ba, err := multilock.New(c, []string{b, a})
	return []access{{ab, true}, {ba, true}}, err
}
