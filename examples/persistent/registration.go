package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/persistent"
)

// job is what the server gets from its parent when it starts.
type job struct {
	Connect string // of ZooKeeper
	Path    string // of the node
	Address string // the data of the node
	Session time.Duration
}

// runServer is registered until ctx ends. What it serves is not shown here.
func runServer(ctx context.Context, j job) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	node, err := persistent.New(client, j.Path, []byte(j.Address))
	if err != nil {
		return err
	}
	// The node does not end with ctx, but with Close, which waits until it is deleted.
	if err := node.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-node.Done():
		return node.Err() // the node cannot be kept, whatever this program does
	}
}
