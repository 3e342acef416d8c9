package crew

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/docent-zk/docent/fence"
)

// How members reach what their parent keeps: HTTP on this machine, one POST for each step, with a Q as its body.

// StepFunc takes one step. Of its errors the callers get the text, and they can tell fence.ErrStale from others.
type StepFunc[Q, A any] func(step string, q Q) (A, error)

// Listen opens an address for the members.
func Listen() (listener net.Listener, url string, err error) {
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for the other processes: %w", err)
	}
	return listener, "http://" + listener.Addr().String(), nil
}

// Serve answers the members until stop is called. A step that is under way then is not waited for.
func Serve[Q, A any](listener net.Listener, take StepFunc[Q, A]) (stop func()) {
	server := &http.Server{Handler: handler(take), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{}) // closed when the server has ended
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when it is closed; if it should end before, the members will say that nobody answers
	}()
	return func() {
		_ = server.Close() // nothing is under way that could get lost
		<-done
	}
}

// reply is the answer as it is sent.
type reply[A any] struct {
	Answer  A
	Refused string // why, if it was
}

func handler[Q, A any](take StepFunc[Q, A]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{step}", func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := take(r.PathValue("step"), q)
		full := reply[A]{Answer: a}
		if err != nil {
			full.Refused = err.Error()
		}
		w.WriteHeader(statusOf(err))
		_ = json.NewEncoder(w).Encode(full) // a member that was killed does not hear it
	})
	return mux
}

func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, fence.ErrStale):
		return http.StatusPreconditionFailed
	}
	return http.StatusConflict
}

// Remote is what the parent serves, as a member sees it.
type Remote[Q, A any] struct {
	name   string
	url    string
	client *http.Client
}

// NewRemote is what is served at url. The name is for errors.
func NewRemote[Q, A any](name, url string) Remote[Q, A] {
	return Remote[Q, A]{name, url, &http.Client{Timeout: 20 * time.Second}}
}

// Do takes one step. A token that is refused is fence.ErrStale.
func (r Remote[Q, A]) Do(ctx context.Context, step string, q Q) (A, error) {
	a, err := r.post(ctx, step, q)
	if err != nil {
		var none A
		return none, fmt.Errorf("%s: %s: %w", r.name, step, err)
	}
	return a, nil
}

func (r Remote[Q, A]) post(ctx context.Context, step string, q Q) (a A, err error) {
	body, err := json.Marshal(q)
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
	var full reply[A]
	if err := json.NewDecoder(response.Body).Decode(&full); err != nil {
		return a, fmt.Errorf("status %s: %w", response.Status, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return full.Answer, nil
	case http.StatusPreconditionFailed:
		return a, staleError(full.Refused)
	}
	return a, errors.New(full.Refused)
}

// staleError is fence.ErrStale on the other side of the wire, with its text.
type staleError string

func (e staleError) Error() string   { return string(e) }
func (staleError) Is(err error) bool { return err == fence.ErrStale }
