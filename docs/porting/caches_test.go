package porting

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

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

// fragment path-children-cache
func followWorkers(
	ctx context.Context, client *framework.Client,
	present, gone func(path string),
) (*cache.Cache, error) {
	const parent = "/workers" // Curator creates it
	if err := client.CreateContainers(ctx, parent); err != nil {
		return nil, err
	}
	workers, err := cache.New(client, parent, cache.WithDepth(1))
	if err != nil {
		return nil, err
	}
	workers.Listen(func(e cache.Event) {
		if e.Path() == parent {
			return // Curator's has only the children
		}
		switch e.Kind {
		case cache.Added, cache.Changed:
			present(e.Path()) // e.New.Data
		case cache.Removed:
			gone(e.Path())
		}
	})
	if err := workers.WaitReady(ctx); err != nil { // BUILD_INITIAL_CACHE
		workers.Close()
		return nil, err
	}
	return workers, nil
}

// currentData returns the children in order, as getCurrentData does.
func currentData(workers *cache.Cache) (all []*cache.Node) {
	for path, node := range workers.All() {
		if path != "/workers" {
			all = append(all, node)
		}
	}
	return all
}

// end

func Example_pathChildrenCache() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		events := make(chan string, 8)
		workers, err := followWorkers(ctx, client,
			func(path string) { events <- "present " + path },
			func(path string) { events <- "gone " + path })
		if err != nil {
			return err
		}
		defer workers.Close()
		for _, name := range []string{"b", "a"} {
			if _, err := client.Create(ctx, "/workers/"+name, []byte(name)); err != nil {
				return err
			}
			fmt.Println(<-events)
		}
		for _, node := range currentData(workers) {
			fmt.Printf("%s %s\n", node.Path, node.Data)
		}
		if _, err := client.Set(ctx, "/workers/a", []byte("newer"), -1); err != nil {
			return err
		}
		fmt.Println(<-events)
		if err := client.Delete(ctx, "/workers/b", -1); err != nil {
			return err
		}
		fmt.Println(<-events)
		return nil
	})
	// Output:
	// present /workers/b
	// present /workers/a
	// /workers/a a
	// /workers/b b
	// present /workers/a
	// gone /workers/b
}

// A TreeCacheSelector whose traverseChildren is false for a node keeps the node.
func TestFilterThatKeepsANodeAndLeavesOutItsChildren(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	for _, p := range []string{"/tree/a/b/c", "/tree/d"} {
		require.NoError(t, srv.Create(p, nil))
	}
	traverses := func(p string) bool { return p != "/tree/a" }
	c, err := cache.New(client, "/tree", cache.WithFilter(func(p string) bool { return traverses(path.Dir(p)) }))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.WaitReady(t.Context()))
	var kept []string
	for p := range c.All() {
		kept = append(kept, p)
	}
	require.Equal(t, []string{"/tree", "/tree/a", "/tree/d"}, kept)
}

// What PersistentNodeListener.nodeCreated tells.
func TestCacheTellsEachCreateOfAKeptNode(t *testing.T) {
	srv := zktest.Start(t)
	client, other := connect(srv), connect(srv)
	defer client.Close()
	defer other.Close()
	created := make(chan struct{}, 8)
	c, err := cache.New(client, "/services/host-3", cache.WithDepth(0), cache.WithListener(func(e cache.Event) {
		if e.Kind == cache.Added {
			created <- struct{}{}
		}
	}))
	require.NoError(t, err)
	defer c.Close()
	node, err := register(t.Context(), client, "10.0.0.3:8080")
	require.NoError(t, err)
	<-created
	require.NoError(t, other.Delete(t.Context(), "/services/host-3", -1))
	<-created
	session, err := client.Session(t.Context())
	require.NoError(t, err)
	for _, s := range srv.Sessions() {
		if s.ID == session.ID() {
			require.NoError(t, s.Expire())
		}
	}
	<-created
	require.NoError(t, node.Close())
}

func TestReadyComesAgainAfterAReconnect(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	ready := make(chan struct{}, 8)
	c, err := cache.New(client, "/config", cache.WithListener(func(e cache.Event) {
		if e.Kind == cache.Ready {
			ready <- struct{}{}
		}
	}))
	require.NoError(t, err)
	defer c.Close()
	<-ready
	require.NoError(t, srv.Sessions()[0].Drop())
	<-ready
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
