package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// startServer returns the connection string of the servers to use, and what ends them. If the user named some, nothing is started.
func startServer(ctx context.Context, given string, say *narrator) (connect string, stop func() error, err error) {
	if given != "" {
		return given, func() error { return nil }, nil
	}
	server, err := ensemble.New(ctx, 1)
	if errors.Is(err, ensemble.ErrNotInstalled) {
		return "", nil, fmt.Errorf("%w; or use a server that runs already, with -connect host:port", err)
	}
	if err != nil {
		return "", nil, err
	}
	say.line("Started a ZooKeeper server at %s.", server.Connect())
	return server.Connect(), server.Close, nil
}
