package main

import (
	"context"
	"math"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// lock is what all kinds of locks can do.
type lock interface {
	Acquire(context.Context) (*recipes.Hold, error)
}

// way is a way to get at the resource.
type way struct {
	lock  lock
	alone bool // as this lock promises
}

// kind is a kind of lock. Its ways exclude each other as the resource demands it.
type kind struct {
	name string
	room int // of the resource
	ways func(c *framework.Client, path string) ([]way, error)
}

func kinds() []kind {
	return []kind{
		{"mutex", 1, func(c *framework.Client, path string) ([]way, error) { return exclusive(mutex.New(c, path)) }},
		{"rwlock", math.MaxInt, readWrite},
		{"semaphore", 3, func(c *framework.Client, path string) ([]way, error) { return shared(semaphore.New(c, path, 3)) }},
		{"semaphore-mutex", 1, func(c *framework.Client, path string) ([]way, error) { return exclusive(semaphore.NewMutex(c, path)) }},
		{"multilock", 1, inBothOrders},
	}
}

func exclusive(l lock, err error) ([]way, error) { return []way{{l, true}}, err }
func shared(l lock, err error) ([]way, error)    { return []way{{l, false}}, err }

// readWrite writes once and reads three times.
func readWrite(c *framework.Client, path string) ([]way, error) {
	rw, err := rwlock.New(c, path)
	if err != nil {
		return nil, err
	}
	read, write := way{rw.Read(), false}, way{rw.Write(), true}
	return []way{write, read, read, read}, nil
}

// inBothOrders is two locks, now in the one order and now in the other.
func inBothOrders(c *framework.Client, path string) ([]way, error) {
	a, b := path+"/a", path+"/b"
	ab, err := multilock.New(c, []string{a, b})
	if err != nil {
		return nil, err
	}
	ba, err := multilock.New(c, []string{b, a})
	return []way{{ab, true}, {ba, true}}, err
}
