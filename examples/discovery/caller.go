package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/docent-zk/docent/recipes/discovery"
)

// caller sends requests to the instances.
type caller struct {
	provider *discovery.Provider
	http     *http.Client
	patience time.Duration

	mu       sync.Mutex
	answered map[int]int // the number of answers of each instance, by its number
	repeated int         // attempts that failed, and were repeated
}

func newCaller(provider *discovery.Provider, patience time.Duration) *caller {
	return &caller{
		provider: provider, patience: patience, answered: map[int]int{}, http: &http.Client{Timeout: 5 * time.Second},
	}
}

// pace is the pause between two requests, and between two attempts without an instance.
const pace = 10 * time.Millisecond

// run sends one request after the other until ctx ends. It returns an error if one is lost.
func (c *caller) run(ctx context.Context) error {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		if err := c.call(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("LOST: a request was not answered: %w", err)
		}
		rest(ctx)
	}
	return nil
}

// call sends one request. An instance may have stopped, although it is listed: then call reports the
// failure, and sends the request to another one. A request that may be sent only once needs more
// than this.
func (c *caller) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for {
		instance, err := c.provider.Pick(ctx)
		switch {
		case errors.Is(err, discovery.ErrNoInstance) && ctx.Err() == nil:
			rest(ctx)
			continue
		case err != nil:
			return err
		}
		number, err := c.get(ctx, "http://"+instance.HostPort())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.count(number, err)
		if err == nil {
			return nil
		}
		c.provider.Fail(instance)
	}
}

func (c *caller) count(number int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.repeated++
		return
	}
	c.answered[number]++
}

// get returns the number of the instance at url.
func (c *caller) get(ctx context.Context, url string) (number int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

// answers returns the number of answers of an instance so far.
func (c *caller) answers(number int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered[number]
}

// total returns the number of answers, and of attempts that were repeated, so far.
func (c *caller) total() (answered, repeated int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.answered {
		answered += n
	}
	return answered, c.repeated
}

func rest(ctx context.Context) {
	select {
	case <-time.After(pace):
	case <-ctx.Done():
	}
}
