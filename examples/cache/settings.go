package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
)

// values are the settings of a program at one time. They do not change.
type values struct {
	workers int
	timeout time.Duration
}

func (v values) String() string { return fmt.Sprintf("%d workers, timeout %v", v.workers, v.timeout) }

// defaultTimeout is the timeout if there is no such node.
const defaultTimeout = 5 * time.Second

// settings keeps the settings current. They are nodes below a path, and their data is text.
type settings struct {
	path   string
	cache  *cache.Cache
	whole  bool // the cache was ready; used by handle alone
	latest atomic.Pointer[values]
	ready  chan struct{} // closed when latest is set
	told   func(what string, err error)
}

// follow follows the settings below path. told is called with what has happened to them, and with an
// error if they are not valid. Then the last valid ones stay.
func follow(client *framework.Client, path string, told func(what string, err error)) (*settings, error) {
	s := &settings{path: path, ready: make(chan struct{}), told: told}
	var err error
	if s.cache, err = cache.New(client, path, cache.WithDepth(1)); err != nil {
		return nil, err
	}
	s.cache.Listen(s.handle)
	return s, nil
}

// now returns the settings that the program works with. It waits only for the first ones.
func (s *settings) now(ctx context.Context) (values, error) {
	select {
	case <-s.ready:
		return *s.latest.Load(), nil
	case <-s.cache.Done():
		return values{}, s.cache.Err()
	case <-ctx.Done():
		return values{}, context.Cause(ctx)
	}
}

func (s *settings) close() { s.cache.Close() }

// handle reads all settings after each change, so that they belong together. Until the cache is ready
// some of them may be missing. Later they may be missing as well: the cache follows a server, and that
// may be behind the one that has the settings. While the cache is stale the program goes on with what
// it has.
func (s *settings) handle(e cache.Event) {
	if e.Kind == cache.Stale {
		s.told("the settings may be out of date", nil)
		return
	}
	if s.whole = s.whole || e.Kind == cache.Ready; !s.whole {
		return
	}
	v, err := s.read()
	if err != nil {
		s.told(fmt.Sprint(e, ": not valid"), err)
		return
	}
	s.told(fmt.Sprintf("%v: %v", e, v), nil)
	if was := s.latest.Swap(&v); was == nil {
		close(s.ready)
	}
}

// read returns the settings that the cache has.
func (s *settings) read() (v values, err error) {
	v.timeout = defaultTimeout
	if n, there := s.cache.Get(s.path + "/timeout"); there {
		if v.timeout, err = time.ParseDuration(string(n.Data)); err != nil {
			return v, err
		}
	}
	n, there := s.cache.Get(s.path + "/workers")
	if !there {
		return v, fmt.Errorf("%s/workers is missing", s.path)
	}
	v.workers, err = strconv.Atoi(string(n.Data))
	return v, err
}
