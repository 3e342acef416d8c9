package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// service is one that has locks.
type service string

const (
	ofRedis     service = "Redis"
	ofZooKeeper service = "ZooKeeper"
)

// tokens are the fencing tokens of a hold. 0 means that the program does not hold the lock of that
// service.
type tokens struct{ redis, zookeeper int64 }

func (t tokens) of(s service) int64 {
	if s == ofRedis {
		return t.redis
	}
	return t.zookeeper
}

var (
	// errMissing means that a write has no token of the service that the resource requires.
	errMissing = errors.New("the required token is missing")
	// errTwice means that two holds had one token.
	errTwice = errors.New("the token was used before")
	// errTogether means that the locks do not exclude each other.
	errTogether = errors.New("two programs use the resource at once")
)

// resource is what the locks protect. A real one keeps the marks where it keeps its data: in SQL they
// are two columns.
type resource struct {
	redisMark, zookeeperMark fence.Register // the largest token of each service

	mu       sync.Mutex
	required service // each write must have a token of it
	inUse    bool
	written  int
}

// require sets the service whose token each write must have.
func (r *resource) require(s service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.required = s
}

// last returns the largest tokens.
func (r *resource) last() tokens { return tokens{r.redisMark.Last(), r.zookeeperMark.Last()} }

func (r *resource) writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written
}

// use is the work of a program under its locks. It takes a moment, in which nothing else uses the
// resource. ctx ends with the hold.
func (r *resource) use(ctx context.Context, t tokens) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
	return r.write(t)
}

func (r *resource) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inUse {
		return errTogether
	}
	r.inUse = true
	return nil
}

func (r *resource) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inUse = false
}

// write compares each token with the mark of its service. The write is made if no mark is larger.
func (r *resource) write(t tokens) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.of(r.required) == 0 {
		return fmt.Errorf("%w: %s", errMissing, r.required)
	}
	return compare(&r.redisMark, t.redis, func() error {
		return compare(&r.zookeeperMark, t.zookeeper, func() error {
			r.written++
			return nil
		})
	})
}

// compare calls write unless the mark is larger than the token. A program writes once in each hold, so
// no two writes have the same token.
func compare(mark *fence.Register, token int64, write func() error) error {
	switch token {
	case 0:
		return write()
	case mark.Last():
		return fmt.Errorf("%w: %d", errTwice, token)
	}
	return mark.Do(token, write)
}
