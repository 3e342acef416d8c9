// Package peer is the part of the comparison that runs in processes of its own: a program that uses one
// kind of lock, as its documentation tells to. It does what its standard input says, a line at a time,
// and answers each with a line:
//
//	acquire      held <token> <time>            waits until the lock is acquired; 0: there is no token
//	look         valid | lost | unknown         asks the library whether it still holds the lock
//	write        written | refused | none       writes in the service of the lock, if the lock is still held there
//	release      released <time>
//	loop <ms>    looped ops=<n> hist=<latencies of acquire and release>
//	many <n>     many <nanoseconds>             acquires n locks, and holds them
//	none         freed <nanoseconds>            releases them
//
// Other answers are "failed <reason>". Times are nanoseconds of a clock that all processes share. A line
// "waiting" may come before the answer to acquire. The programs in Java and Python beside this
// package do the same.
package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// Services are the services that locks are on.
const (
	ZooKeeper  = "zookeeper"
	Redis      = "redis"
	Masters    = "masters" // five independent masters of Redis
	PostgreSQL = "postgresql"
	MariaDB    = "mariadb"
	Etcd       = "etcd"
)

// Config is what a peer is told when it starts.
type Config struct {
	Servers []string // addresses
	Name    string   // of the lock: letters, digits and hyphens
	Lease   time.Duration
	Ahead   time.Duration // how much its wall clock is ahead; only peers with a Clock obey
	Waiting func()        // to be called by Own peers when they begin to wait
}

// Lock is a lock of a program.
type Lock interface {
	// Acquire waits until the lock is acquired. It returns an error if the library gives up.
	Acquire(ctx context.Context) (Held, error)
}

// Held is a lock that was acquired.
type Held interface {
	// Token returns the fencing token, 0 if there is none.
	Token() int64
	// Look returns what the library tells of the lock now.
	Look(ctx context.Context) State
	Release(ctx context.Context) error
}

// Writer is Held that can write in the service of the lock, which refuses the write if the lock is not
// held any more.
type Writer interface {
	Write(ctx context.Context) error
}

// State is what a library tells of a lock that was acquired.
type State string

const (
	Valid   State = "valid"
	Lost    State = "lost"
	Unknown State = "unknown" // the library has no way to ask
)

// stateOf returns the state of a lock that is held or not.
func stateOf(held bool) State {
	if held {
		return Valid
	}
	return Lost
}

// Program connects to a service. It returns a function that makes locks by name.
type Program func(ctx context.Context, c Config) (func(name string) (Lock, error), error)

// Kind is a kind of lock under comparison.
type Kind struct {
	Name    string // in tables and on the command line
	Service string
	Token   bool   // it has a fencing token
	Guard   bool   // it can write in the service itself
	Own     bool   // it is built by hand, here, from a recipe that is popular
	Fixed   bool   // its lease is not renewed
	Clock   bool   // it depends on the wall clock, which is here the machine's and what it is ahead
	Command string // runs it, if it is not this program
	start   Program
}

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Serve runs the program of a kind until the end of its input.
func Serve(ctx context.Context, k Kind, c Config, in io.Reader, out io.Writer) error {
	c.Waiting = func() { fmt.Fprintln(out, "waiting") }
	locks, err := k.start(ctx, c)
	if err != nil {
		return err
	}
	p := &program{name: c.Name, locks: locks}
	if p.lock, err = locks(c.Name); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := p.obey(ctx, lines.Text())
		if err != nil {
			answer = "failed " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Fprintln(out, answer)
	}
	return lines.Err()
}

// program is a program with one lock that it acquires, and perhaps many others.
type program struct {
	name  string
	locks func(name string) (Lock, error)
	lock  Lock
	held  Held
	many  []Held
}

var errNotHeld = errors.New("the lock was not acquired")

func (p *program) obey(ctx context.Context, line string) (answer string, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	number := 0
	if rest != "" {
		if number, err = strconv.Atoi(rest); err != nil {
			return "", err
		}
	}
	if p.held == nil && slices.Contains([]string{"look", "write", "release"}, verb) {
		return "", errNotHeld
	}
	switch verb {
	case "acquire":
		held, err := p.lock.Acquire(ctx)
		if err != nil {
			return "", err
		}
		p.held = held
		return fmt.Sprint("held ", p.held.Token(), " ", Now()), nil
	case "look":
		return string(p.held.Look(ctx)), nil
	case "write":
		return p.write(ctx), nil
	case "release":
		held, began := p.held, Now()
		p.held = nil
		return fmt.Sprint("released ", began), held.Release(ctx)
	case "loop":
		return p.loop(ctx, time.Duration(number)*time.Millisecond)
	case "many":
		return p.acquireMany(ctx, number)
	case "none":
		return p.releaseMany(ctx)
	}
	return "", fmt.Errorf("cannot do %q", line)
}

func (p *program) write(ctx context.Context) string {
	w, ok := p.held.(Writer)
	if !ok {
		return "none"
	}
	if err := w.Write(ctx); err != nil {
		return "refused"
	}
	return "written"
}

func (p *program) loop(ctx context.Context, long time.Duration) (string, error) {
	latencies, ops := &hist.Histogram{}, 0
	for end := time.Now().Add(long); time.Now().Before(end); ops++ {
		began := time.Now()
		held, err := p.lock.Acquire(ctx)
		if err != nil {
			return "", err
		}
		if err := held.Release(ctx); err != nil {
			return "", err
		}
		latencies.Record(time.Since(began))
	}
	return fmt.Sprintf("looped ops=%d hist=%v", ops, latencies), nil
}

func (p *program) acquireMany(ctx context.Context, n int) (string, error) {
	began := time.Now()
	for i := range n {
		lock, err := p.locks(fmt.Sprint(p.name, "-", i))
		if err != nil {
			return "", err
		}
		held, err := lock.Acquire(ctx)
		if err != nil {
			return "", err
		}
		p.many = append(p.many, held)
	}
	return fmt.Sprint("many ", time.Since(began).Nanoseconds()), nil
}

func (p *program) releaseMany(ctx context.Context) (string, error) {
	began := time.Now()
	for _, held := range p.many {
		if err := held.Release(ctx); err != nil {
			return "", err
		}
	}
	p.many = nil
	return fmt.Sprint("freed ", time.Since(began).Nanoseconds()), nil
}

// retry calls try until it succeeds, ctx ends, or try fails.
func retry(ctx context.Context, pause time.Duration, try func() (done bool, err error)) error {
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
