// Limited-resource uses a resource again and again, under a mutex that all processes share. The
// resource permits only one user at a time.
//
// It is a port of LimitedResource.java in the same folder. Both can run at the same time, with the
// same -path and -dir.
//
//	go run ./examples/porting/limited-resource -dir /tmp/resource
//	go run ./examples/porting/limited-resource -dir /tmp/resource -connect 127.0.0.1:2181
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
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func main() { program.Main(newLimitedResource(flag.CommandLine).run) }

const acquireTimeout = time.Minute

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

func (r *limitedResource) useLocked(ctx context.Context, mu *mutex.Mutex) error {
	return recipes.DoWithin(ctx, mu, acquireTimeout, func(ctx context.Context, hold *recipes.Hold) error {
		// The context ends if the lock is lost. The original needs a listener for that.
		return r.use(ctx, hold.Token())
	}) // also reports a loss before the end of the work
}

// use must not run twice at the same time, in all processes together. The resource detects if it
// does. The token is written beside the name, which shows afterwards in which order the lock was
// held. A folder of files cannot compare tokens and write in one step, as a database can.
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

// enter creates a file. A process that is killed inside does not delete it.
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
