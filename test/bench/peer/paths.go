package peer

import (
	"context"
	"fmt"
	"time"
)

// paths measures what a client keeps of paths that it has locked once: the memory after the last
// release.
type paths struct {
	job     Job
	clients clients
}

func newPaths(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, 1)
	return &paths{job, all}, err
}

func (p *paths) close() { p.clients.close() }

// pathWorkers is the number of paths that are locked at a time.
const pathWorkers = 64

func (p *paths) run(ctx context.Context, _ time.Duration) (Result, error) {
	if err := p.lockAll(ctx, "first", 10*pathWorkers); err != nil { // allocates what all paths share
		return Result{}, err
	}
	before := steady()
	began := time.Now()
	if err := p.lockAll(ctx, "all", p.job.Threads); err != nil {
		return Result{}, err
	}
	took := time.Since(began)
	time.Sleep(settling)
	r := compare(before, steady(), p.job.Threads)
	r.Took = took
	return r, nil
}

// lockAll locks n paths below a directory, which are spread over a hundred directories.
func (p *paths) lockAll(ctx context.Context, directory string, n int) error {
	return times(pathWorkers, n, func(i int) error {
		one, err := p.clients[0].lock(p.job.Kind, fmt.Sprintf("%s/%s/%d/%d", p.job.Path, directory, i%100, i))
		if err == nil {
			err = one.acquire(ctx)
		}
		if err == nil {
			err = one.release()
		}
		return err
	})
}
