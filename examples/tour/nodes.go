package main

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/persistent"
)

// showCache has Ann follow settings that Bob changes.
func showCache(ctx context.Context, t *tour) (err error) {
	if _, err := t.bob.Create(ctx, "/tour/settings/color", []byte("red"), framework.Parents()); err != nil {
		return err
	}
	t.call("Bob", `client.Create(ctx, "color", "red")`, "created")
	events := make(chan cache.Event, 10)
	settings, err := cache.New(t.ann, "/tour/settings", cache.WithListener(func(e cache.Event) { events <- e }))
	if err != nil {
		return err
	}
	defer settings.Close()
	if err := settings.WaitReady(ctx); err != nil {
		return err
	}
	if err := t.printSetting(settings); err != nil {
		return err
	}
	if _, err := t.bob.Set(ctx, "/tour/settings/color", []byte("blue"), -1); err != nil {
		return err
	}
	t.call("Bob", `client.Set(ctx, "color", "blue")`, "set")
	if err := t.printChange(ctx, events); err != nil {
		return err
	}
	return t.printSetting(settings)
}

// printSetting prints a setting as the cache has it, without a request.
func (t *tour) printSetting(settings *cache.Cache) error {
	node, ok := settings.Get("/tour/settings/color")
	if !ok {
		return fmt.Errorf("the cache has no color")
	}
	t.call("Ann", `settings.Get("color")`, "%s, from memory", node.Data)
	return nil
}

// printChange waits for a change of a node.
func (t *tour) printChange(ctx context.Context, events <-chan cache.Event) error {
	for {
		select {
		case e := <-events:
			if e.Kind == cache.Changed {
				t.call("Ann", "listener(event)", "%v: %s -> %s", e.Kind, e.Old.Data, e.New.Data)
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// showPersistent has Bob delete a node that Ann keeps.
func showPersistent(ctx context.Context, t *tour) error {
	node, err := persistent.New(t.ann, "/tour/servers/ann", []byte("10.0.0.1:80"))
	if err != nil {
		return err
	}
	if err := node.Start(ctx); err != nil {
		return err
	}
	if err := node.WaitReady(ctx); err != nil {
		return err
	}
	before, err := t.bob.Exists(ctx, "/tour/servers/ann")
	if err != nil {
		return err
	}
	ephemeral := before.EphemeralOwner != 0
	t.call("Ann", "node.Start(ctx); node.WaitReady(ctx)", "the node is there, ephemeral: %t", ephemeral)
	if err := t.bob.Delete(ctx, "/tour/servers/ann", -1); err != nil {
		return err
	}
	t.call("Bob", "client.Delete(ctx, path, -1)", "deleted, by mistake")
	err = program.Wait(ctx, "the node did not come back", func() bool {
		after, err := t.bob.Exists(ctx, "/tour/servers/ann")
		return err == nil && after.Czxid > before.Czxid
	})
	if err != nil {
		return err
	}
	t.call("Bob", "client.Exists(ctx, path)", "it is there again")
	if err := node.Close(); err != nil {
		return err
	}
	t.call("Ann", "node.Close()", "deleted for good")
	return nil
}
