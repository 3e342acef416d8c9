package main

import (
	"context"
	"errors"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// showEnsembles shows locks on two ensembles.
func showEnsembles(ctx context.Context, t *tour) (err error) {
	server, err := zktest.New() // the other ensemble
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := framework.New(server.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	set, err := ensembles.New([]ensembles.Ensemble{{Name: "east", Client: t.ann}, {Name: "west", Client: client}})
	if err != nil {
		return err
	}
	for _, order := range []string{"order-1", "order-2"} {
		lock, err := set.Lock(order, func(c *framework.Client) (recipes.Locker, error) {
			return mutex.New(c, "/tour/"+order)
		})
		if err != nil {
			return err
		}
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		t.call("Ann", `hold := locks("`+order+`").Acquire(ctx)`, "holds on ensemble %s", set.Of(order)[0].Name)
		if err := t.release("Ann", "hold.Release()", hold); err != nil {
			return err
		}
	}
	return nil
}
