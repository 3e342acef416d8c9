package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
)

// alive answers 200 while the process can answer at all. It does not ask the client, which connects again
// by itself: a restart of the process would only lose its place in queues.
func alive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") }

// ready answers 200 while the client can rely on its session for at least another third of the session
// timeout, and 503 otherwise. So a short interruption of the connection is healthy. After a third of the
// timeout without an answer of the ZooKeeper leader the service is not ready, and after two thirds holds
// are lost. A service that waits for the lock is ready.
func ready(client *framework.Client, stopping *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context(), client, stopping); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%v to %s\n", client.State(), client.Server())
	}
}

// check makes no request to the servers.
func check(ctx context.Context, client *framework.Client, stopping *atomic.Bool) error {
	if stopping.Load() {
		return errors.New("the service stops")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	session, err := client.Session(ctx)
	if err != nil {
		return err
	}
	return checkRest(time.Until(session.ValidUntil()), session.Timeout())
}

// checkRest checks for how long the client can rely on its session.
func checkRest(rest, timeout time.Duration) error {
	if rest < timeout/3 {
		return fmt.Errorf("the servers do not answer: all holds end in %v", rest)
	}
	return nil
}
