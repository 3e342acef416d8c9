package porting

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
)

// fragment cache
func followConfig(
	ctx context.Context, client *framework.Client, changed func(path string),
) (*cache.Cache, error) {
	c, err := cache.New(client, "/config",
		cache.WithListener(func(e cache.Event) {
			if e.Path() != "" { // not Ready or Stale
				changed(e.Path())
			}
		}))
	if err != nil {
		return nil, err
	}
	if err := c.WaitReady(ctx); err != nil { // until it has the tree
		c.Close()
		return nil, err
	}
	return c, nil
}

func timeout(c *cache.Cache) string {
	if node, ok := c.Get("/config/timeout"); ok {
		return string(node.Data)
	}
	return "10s"
}

// end

func Example_cache() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		_, err := client.Create(ctx, "/config/timeout", []byte("3s"), framework.Parents())
		if err != nil {
			return err
		}
		events := make(chan string, 8)
		c, err := followConfig(ctx, client, func(path string) { events <- path })
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Println(<-events, <-events, timeout(c))
		if err := client.Delete(ctx, "/config/timeout", -1); err != nil {
			return err
		}
		fmt.Println(<-events, timeout(c))
		return nil
	})
	// Output:
	// /config /config/timeout 3s
	// /config/timeout 10s
}

// fragment persistent-watch
func watchTree(
	ctx context.Context, client *framework.Client, path string,
	changed func(path string),
) (*framework.PersistentWatch, error) {
	return client.AddWatch(ctx, path, framework.WatchTree,
		func(e framework.WatchEvent) {
			if e.Type == zk.EventNotWatching {
				changed(path) // events may have been missed: read again
				return
			}
			changed(e.Path)
		})
}

// end

func Example_persistentWatch() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		events := make(chan string, 8)
		watch, err := watchTree(ctx, client, "/jobs", func(path string) { events <- path })
		if err != nil {
			return err
		}
		defer watch.Stop()
		if _, err := client.Create(ctx, "/jobs/a", nil, framework.Parents()); err != nil {
			return err
		}
		seen := []string{<-events, <-events}
		fmt.Println(strings.Join(seen, " "))
		return nil
	})
	// Output:
	// /jobs /jobs/a
}
