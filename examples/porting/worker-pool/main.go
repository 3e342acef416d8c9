// Worker-pool has several workers do jobs, of which all processes together never do more at a time than a limit. It is a port:
// WorkerPool.java beside it is the original, and both can run at the same time, on one -path and one -dir, with one -limit.
//
//	go run ./examples/porting/worker-pool -dir /tmp/pool                          # is its own ZooKeeper server, for tests
//	go run ./examples/porting/worker-pool -dir /tmp/pool -connect 127.0.0.1:2181  # uses a real one: start several at a time
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func main() { program.Main(newWorkerPool(flag.CommandLine).run) }

type workerPool struct {
	name                   string
	path                   string
	dir                    string
	limit, workers, rounds int
	semaphore              *semaphore.Semaphore
	work                   func(context.Context) error // what a job does

	mu   sync.Mutex
	peak int
}

func newWorkerPool(flags *flag.FlagSet) *workerPool {
	p := &workerPool{name: fmt.Sprintf("go-%d", os.Getpid()), work: work}
	flags.StringVar(&p.path, "path", "/docent-examples/porting/worker-pool", "`node` of the semaphore")
	flags.StringVar(&p.dir, "dir", "", "`folder` of the jobs")
	flags.IntVar(&p.limit, "limit", 3, "how many jobs run at a time, in all processes together")
	flags.IntVar(&p.workers, "workers", 3, "how many workers this process has")
	flags.IntVar(&p.rounds, "rounds", 10, "how many jobs each worker does")
	return p
}

func (p *workerPool) run(ctx context.Context, connect string, out io.Writer) (err error) {
	if p.dir == "" {
		return errors.New("-dir is missing")
	}
	for _, state := range []string{"running", "done"} {
		if err := os.MkdirAll(filepath.Join(p.dir, state), 0o755); err != nil {
			return err
		}
	}
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if p.semaphore, err = semaphore.New(client, p.path, p.limit); err != nil {
		return err
	}
	if err := p.runAll(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has done %d jobs, of at most %d at a time\n", p.name, p.workers*p.rounds, p.peak)
	return nil
}

// runAll runs all workers. The first error ends it for all of them, where in the original the others go on.
func (p *workerPool) runAll(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for worker := range p.workers {
		all.Go(func() {
			for i := range p.rounds {
				if err := p.job(ctx, fmt.Sprintf("%s-%d-%d", p.name, worker, i)); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (p *workerPool) job(ctx context.Context, id string) (err error) {
	permit, err := p.semaphore.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, permit.Release()) }() // tells if the permit was lost before the work was done
	return p.do(permit.Context(ctx), id)                        // ends if the permit is lost, which the original does not notice
}

// do has a file in one folder while the job runs, and in another one when it is done.
func (p *workerPool) do(ctx context.Context, id string) error {
	file := filepath.Join(p.dir, "running", id)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	err := p.checkLimit()
	if err == nil {
		err = p.work(ctx)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return os.Rename(file, filepath.Join(p.dir, "done", id))
}

// checkLimit sees if there are too many jobs. Those that are there at two looks all ran between the two; one look can see some that never
// met.
func (p *workerPool) checkLimit() error {
	first, err := p.jobs()
	if err != nil {
		return err
	}
	second, err := p.jobs()
	if err != nil {
		return err
	}
	jobs := slices.DeleteFunc(first, func(job string) bool { return !slices.Contains(second, job) })
	if len(jobs) > p.limit {
		return fmt.Errorf("%d jobs at a time, not %d: %v", len(jobs), p.limit, jobs)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = max(p.peak, len(jobs))
	return nil
}

func (p *workerPool) jobs() (ids []string, err error) {
	files, err := os.ReadDir(filepath.Join(p.dir, "running"))
	for _, file := range files {
		ids = append(ids, file.Name())
	}
	return ids, err
}

// work takes a while. It stops when ctx ends, and with it the permit.
func work(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
