package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/recipes/internal/check"
)

// place is a barrier of a client.
type place struct {
	client *framework.Client // nil in the zero value
	path   string
}

func newPlace(c *framework.Client, path string) (place, error) {
	return place{c, path}, check.Path(c, path)
}

// begin returns an error for a call that cannot succeed.
func (p *place) begin(ctx context.Context, kind string) error {
	return check.Call(ctx, "barrier", kind, p.client != nil)
}

// child returns the path of a node below that of the barrier.
func (p *place) child(name string) string { return p.path + "/" + name }

// outlasts reports whether a call goes on after err: it waits for the connection.
func (p *place) outlasts(ctx context.Context, err error) bool { return p.client.Outlast(ctx, err) }

// failed returns the error of a call from that of its last request.
func (p *place) failed(ctx context.Context, call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", call, p.path, p.cause(ctx, err))
}

// cause adds to err that the client is closed or ctx has ended.
func (p *place) cause(ctx context.Context, err error) error {
	if isClosed(p.client.Done()) && !errors.Is(err, framework.ErrClosed) {
		err = errtext.Because(framework.ErrClosed, err)
	}
	return ctxerr.With(ctx, err)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until one of the watches fires. They fire also when their session ends. A nil watch
// never fires.
func (p *place) await(ctx context.Context, first, second *framework.Watch) error {
	select {
	case <-fired(first):
	case <-fired(second):
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-p.client.Done():
		return framework.ErrClosed
	}
	return nil
}

func fired(w *framework.Watch) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fired()
}

// newID returns a random UUID.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// remains are nodes of failed calls whose deletion is not confirmed. A barrier would count them as
// parties, so the next party of the same process waits until they are deleted.
type remains struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

func (r *remains) add(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paths == nil {
		r.paths = map[string]struct{}{}
	}
	r.paths[path] = struct{}{}
}

func (r *remains) list() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path := range r.paths {
		all = append(all, path)
	}
	return all
}

// clear deletes the nodes.
func (r *remains) clear(ctx context.Context, c *framework.Client) error {
	for _, path := range r.list() {
		err := c.DeleteGuaranteed(ctx, path)
		if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			return err
		}
		r.remove(path)
	}
	return nil
}

func (r *remains) remove(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paths, path)
}
