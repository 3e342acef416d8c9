// Limited-resource uses a resource that stands only one user at a time, again and again, under a mutex that all processes share. It is a
// port: LimitedResource.java beside it is the original, and both can run at the same time, on one -path and one -dir.
//
//	go run ./examples/porting/limited-resource -dir /tmp/resource                          # is its own ZooKeeper server, for tests
//	go run ./examples/porting/limited-resource -dir /tmp/resource -connect 127.0.0.1:2181  # uses a real one: start several at a time
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/mutex"
)

func main() { program.Main(newLimitedResource(flag.CommandLine).run) }

const patience = time.Minute

type limitedResource struct {
	name   string
	path   string
	dir    string
	rounds int
}

func newLimitedResource(flags *flag.FlagSet) *limitedResource {
	r := &limitedResource{name: fmt.Sprintf("go-%d", os.Getpid())}
	flags.StringVar(&r.path, "path", "/docent-examples/porting/limited-resource", "`node` of the lock")
	flags.StringVar(&r.dir, "dir", "", "`folder` that is the resource")
	flags.IntVar(&r.rounds, "rounds", 10, "how often to use it")
	return r
}

func (r *limitedResource) run(ctx context.Context, connect string, out io.Writer) (err error) {
	if r.dir == "" {
		return errors.New("-dir is missing")
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mu, err := mutex.New(client, r.path)
	if err != nil {
		return err
	}
	for range r.rounds {
		if err := r.useLocked(ctx, mu); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s has used the resource %d times\n", r.name, r.rounds)
	return nil
}

func (r *limitedResource) useLocked(ctx context.Context, mu *mutex.Mutex) (err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	hold, err := mu.Acquire(waiting) // which bounds the wait, not the hold
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }() // tells if the lock was lost before the work was done
	return r.use(hold.Context(ctx), hold.Token())             // ends if the lock is lost: the original needs a listener for that
}

// use must not be called by two at the same time. The resource sees if it is. The token is kept beside the name, to see afterwards who had
// the lock when: a folder of files cannot refuse a smaller one in the same step as it writes, as a database can.
func (r *limitedResource) use(ctx context.Context, token int64) (err error) {
	inside := filepath.Join(r.dir, "inside")
	if err := r.enter(inside); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(inside)) }()
	count, err := r.readCounter()
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "counter"), []byte(strconv.Itoa(count+1)), 0o644); err != nil {
		return err
	}
	return appendTo(filepath.Join(r.dir, "users"), fmt.Sprintf("%s %d\n", r.name, token))
}

// enter leaves a mark, which a process that is killed inside leaves behind.
func (r *limitedResource) enter(inside string) error {
	file, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is not alone: %s is there", r.name, inside)
	}
	if err != nil {
		return err
	}
	return file.Close()
}

func (r *limitedResource) readCounter() (int, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, "counter"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

func work(ctx context.Context) error {
	select {
	case <-time.After(2 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
