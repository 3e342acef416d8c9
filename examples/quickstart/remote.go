package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// How the workers reach the store: HTTP on this machine, one POST for each step, with a visit as its body.

// stepFunc takes one step at the store.
type stepFunc func(step string, v visit) (answer, error)

// listen opens the store's address for the workers.
func listen() (listener net.Listener, url string, err error) {
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for the workers: %w", err)
	}
	return listener, "http://" + listener.Addr().String(), nil
}

// serve answers the workers until stop is called.
func serve(listener net.Listener, apply stepFunc) (stop func()) {
	server := &http.Server{Handler: handler(apply), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{}) // closed when the server has ended
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed; if it should end before, the workers will say that nobody answers
	}()
	return func() {
		_ = server.Close() // nothing is under way that could get lost
		<-done
	}
}

func handler(apply stepFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{step}", func(w http.ResponseWriter, r *http.Request) {
		var v visit
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := apply(r.PathValue("step"), v)
		if err != nil {
			a.Refused = err.Error()
		}
		w.WriteHeader(statusOf(err))
		_ = json.NewEncoder(w).Encode(a) // a worker that was killed does not hear it
	})
	return mux
}

func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, errStale):
		return http.StatusPreconditionFailed
	}
	return http.StatusConflict
}

// remoteStore is the store as a worker sees it.
type remoteStore struct {
	url    string
	client *http.Client
}

func newRemoteStore(url string) remoteStore {
	return remoteStore{url, &http.Client{Timeout: 20 * time.Second}}
}

func (r remoteStore) do(ctx context.Context, step string, v visit) (answer, error) {
	a, err := r.post(ctx, step, v)
	if err != nil {
		return answer{}, fmt.Errorf("store: %s: %w", step, err)
	}
	return a, nil
}

func (r remoteStore) post(ctx context.Context, step string, v visit) (a answer, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/"+step, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return a, fmt.Errorf("status %s: %w", response.Status, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return a, nil
	case http.StatusPreconditionFailed:
		return a, staleError(a.Refused)
	}
	return a, errors.New(a.Refused)
}

// staleError is errStale on the other side of the wire, with its text.
type staleError string

func (e staleError) Error() string   { return string(e) }
func (staleError) Is(err error) bool { return err == errStale }
