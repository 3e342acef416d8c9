package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// In a test, ensemble.Start(t, 3) also stops the servers.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	servers, err := ensemble.New(ctx, 3)
	if errors.Is(err, ensemble.ErrNotInstalled) {
		fmt.Println("there is no ZooKeeper")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer servers.Close()
	leader, err := servers.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := leader.Kill(); err != nil { // the other two elect another one
		log.Fatal(err)
	}
	if err := servers.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("clients connect to", servers.Connect())
}
