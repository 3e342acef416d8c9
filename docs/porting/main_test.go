package porting

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// run runs an example with a server of its own and a connected client. It prints the error of the
// example.
func run(example func(ctx context.Context, client *framework.Client, srv *zktest.Server) error) {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	client := connect(srv)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.WaitConnected(ctx); err != nil {
		panic(err)
	}
	if err := example(ctx, client, srv); err != nil {
		fmt.Println("error:", err)
	}
}

func connect(srv *zktest.Server) *framework.Client {
	client, err := framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	return client
}

// say returns work that prints what it does.
func say(what string) func(context.Context) error {
	return func(context.Context) error {
		fmt.Println(what)
		return nil
	}
}
