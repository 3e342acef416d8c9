package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

func newMutex(t *testing.T, srv *zktest.Server, name string) *mutex.Mutex {
	t.Helper()
	client, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(name).DialContext), framework.WithSessionTimeout(sessionTimeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // a client left open is a deadlock
	mu, err := mutex.New(client, "/lock")
	if err != nil {
		t.Fatal(err)
	}
	return mu
}

func TestHoldOfAProcessThatIsCutOffEndsBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		first, err := newMutex(t, srv, "first").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		srv.Client("first").Cut()
		next, err := newMutex(t, srv, "next").Acquire(t.Context()) // waits until the servers expire the session
		if err != nil {
			t.Fatal(err)
		}

		if !errors.Is(first.Err(), framework.ErrSessionLost) || next.Err() != nil {
			t.Errorf("want a lost hold and a valid one, got %v and %v", first.Err(), next.Err())
		}
		srv.Client("first").Heal()
		time.Sleep(time.Minute) // takes no time
		if err := next.Release(); err != nil {
			t.Error(err)
		}
	})
}
