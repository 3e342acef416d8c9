package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
)

// service is the name of the service.
const service = "greeter"

// job is what an instance gets from its parent when it starts.
type job struct {
	Number  int
	Connect string // of ZooKeeper
	Path    string // of the registry
	Session time.Duration
}

// runInstance serves until ctx ends.
func runInstance(ctx context.Context, j job) (err error) {
	client, err := framework.New(j.Connect, framework.WithSessionTimeout(j.Session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	registry, err := discovery.New(client, j.Path)
	if err != nil {
		return err
	}

	// The instance serves before it is registered, and is unregistered before it stops serving.
	listener, stop, err := serve(j.Number)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	address := listener.Addr().(*net.TCPAddr)
	self, err := registry.Register(discovery.Instance{
		Name:    service,
		Address: address.IP.String(),
		Port:    address.Port,
		Payload: strconv.AppendInt(nil, int64(j.Number), 10), // any JSON
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, self.Close()) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-self.Done():
		return self.Err() // the instance cannot be kept registered, whatever this program does
	}
}

// drain is how long the requests that have begun may take when an instance stops.
const drain = 5 * time.Second

// serve answers each request with a number until stop is called. stop waits for the requests that
// have begun.
func serve(number int) (listener net.Listener, stop func() error, err error) {
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, number) }),
		ReadHeaderTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when stop is called; if it returns earlier, the requests fail
	}()
	return listener, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		err := server.Shutdown(ctx)
		<-done
		return err
	}, nil
}
