package child

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

// Children reach what their parent keeps over HTTP on this machine. Each step is one POST with a Q
// as its body.

// StepFunc takes one step. The child gets the text of an error, and an error that matches
// fence.ErrStale still matches it there.
type StepFunc[Q, A any] func(step string, q Q) (A, error)

// Listen opens an address for the children.
func Listen() (listener net.Listener, url string, err error) {
	listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for the other processes: %w", err)
	}
	return listener, "http://" + listener.Addr().String(), nil
}

// Serve answers the children until stop is called. The stop function does not wait for a step that
// is still running.
func Serve[Q, A any](listener net.Listener, take StepFunc[Q, A]) (stop func()) {
	server := &http.Server{Handler: handler(take), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{}) // closed when the server has ended
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when it is closed; if it returns earlier, the children's requests fail
	}()
	return func() {
		_ = server.Close() // no running step has anything to lose
		<-done
	}
}

// reply is the body of a response.
type reply[A any] struct {
	Answer  A
	Refused string // the reason of a refusal; "" if the step was taken
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
		_ = json.NewEncoder(w).Encode(full) // fails if the child was killed
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

// Remote sends a child's steps to its parent.
type Remote[Q, A any] struct {
	name   string
	url    string
	client *http.Client
}

// stepTimeout is how long a step may take.
const stepTimeout = time.Minute

// NewRemote returns a Remote for what the parent serves at url. Errors begin with the name.
func NewRemote[Q, A any](name, url string) Remote[Q, A] {
	return Remote[Q, A]{name, url, &http.Client{Timeout: stepTimeout}}
}

// Do takes one step. The error matches fence.ErrStale if the token was refused.
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

// staleError is the text of a refusal that matches fence.ErrStale.
type staleError string

func (e staleError) Error() string   { return string(e) }
func (staleError) Is(err error) bool { return err == fence.ErrStale }
