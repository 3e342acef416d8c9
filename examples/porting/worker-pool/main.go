// Worker-pool runs jobs in several workers. All processes together never run more jobs at the same
// time than a limit.
//
// It is a port of WorkerPool.java in the same folder. Both can run at the same time, with the same
// -path, -dir and -limit.
//
//	go run ./examples/porting/worker-pool -dir /tmp/pool
//	go run ./examples/porting/worker-pool -dir /tmp/pool -connect 127.0.0.1:2181
//
// The first command starts a ZooKeeper server for tests in the same process. The second one uses a
// real server; start it several times at once.
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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func main() { program.Main(newWorkerPool(flag.CommandLine).run) }

type workerPool struct {
	name                   string
	path                   string
	dir                    string
	limit, workers, rounds int
	semaphore              *semaphore.Semaphore
	work                   func(context.Context) error // the work of one job

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

// runAll runs all workers. The first error ends all of them. In the original, the others go on.
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

func (p *workerPool) job(ctx context.Context, id string) error {
	return p.semaphore.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		// The context ends if the permit is lost. The original does not notice that.
		return p.do(ctx, id)
	}) // also reports a loss before the end of the work
}

// do runs a job. The job has a file in one folder while it runs, and in another folder afterwards.
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

// checkLimit returns an error if too many jobs run. It lists the jobs twice. All jobs that are in
// both lists ran at the time between them. One list alone may have jobs that did not run at the
// same time.
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

// work takes 20 ms. It stops when ctx ends, which it does with the permit.
func work(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
