// Rwlock shows a lock that either any number of readers share or one writer holds alone. The class
// of Curator is InterProcessReadWriteLock.
//
//	go run ./examples/rwlock                          # starts a test server in this process
//	go run ./examples/rwlock -connect 127.0.0.1:2181  # uses a real one
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

func main() { program.Main(run) }

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	// The path is random so that no other program uses this lock.
	rw, err := rwlock.New(client, "/docent-examples/rwlock-"+rand.Text())
	if err != nil {
		return err
	}
	s := &shop{rw: rw, out: out}
	for _, part := range []func(context.Context) error{s.share, s.write, s.downgrade, s.upgrade} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shop has a price that the lock protects. Ann and Bob could be two processes. An acquire is Ann's
// if its context comes from one of her holds. In Curator, the thread decides that.
type shop struct {
	rw    *rwlock.RWLock
	price int
	out   io.Writer
}

// share shows that readers hold the lock at the same time, and that a writer has to wait.
func (s *shop) share(ctx context.Context) (err error) {
	ann, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(ann, &err)
	bob, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	_, err = s.rw.Write().TryAcquire(ctx)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "share: Ann and Bob both read %d; no writer gets in\n", s.price)
	return nil
}

// write shows that a writer holds the lock alone. Bob waits in the queue until Ann releases it.
func (s *shop) write(ctx context.Context) error {
	ann, err := s.rw.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	bob := make(chan error, 1)
	go func() { bob <- s.read(ctx) }()
	s.price++
	_, err = s.rw.Read().TryAcquire(ctx)
	if err = program.Expect(err, recipes.ErrNotAcquired); err == nil {
		fmt.Fprintf(s.out, "write: Ann makes it %d; no reader gets in\n", s.price)
	}
	return errors.Join(err, ann.Release(), <-bob) // Release comes before the wait for Bob, because Bob waits for it
}

func (s *shop) read(ctx context.Context) (err error) {
	bob, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	fmt.Fprintf(s.out, "write: Ann is done; Bob reads %d\n", s.price)
	return nil
}

// downgrade shows that a writer becomes a reader and no other writer gets the lock in between.
func (s *shop) downgrade(ctx context.Context) (err error) {
	ann, err := s.writeAndRead(ctx)
	if err != nil {
		return err
	}
	defer release(ann, &err)
	bob, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	_, err = s.rw.Write().TryAcquire(ctx)
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "downgrade: Ann makes it %d and becomes a reader; Bob gets in, no writer does\n", s.price)
	return nil
}

// writeAndRead writes and returns a read hold. The write hold is released here, and its context
// ends. So what follows needs a context from the read hold.
func (s *shop) writeAndRead(ctx context.Context) (reading *recipes.Hold, err error) {
	writing, err := s.rw.Write().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release(writing, &err)
	s.price++
	return s.rw.Read().Acquire(writing.Context(ctx)) // does not wait: the context carries the write hold
}

// upgrade shows that a reader becomes a writer if it is the only reader. Curator cannot do that: a
// reader that acquires the write lock there waits for its own read lock, for ever. In docent, such
// an Acquire fails, and so does TryUpgrade while Bob reads.
func (s *shop) upgrade(ctx context.Context) (err error) {
	ann, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(ann, &err)
	if err := s.upgradeBesideBob(ctx, ann); err != nil {
		return err
	}
	writing, err := s.rw.TryUpgrade(ann.Context(ctx))
	if err != nil {
		return err
	}
	defer release(writing, &err)
	s.price++
	fmt.Fprintf(s.out, "upgrade: Ann may not while Bob reads; as the only reader she may, and makes it %d\n", s.price)
	return nil
}

func (s *shop) upgradeBesideBob(ctx context.Context, ann *recipes.Hold) (err error) {
	bob, err := s.rw.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(bob, &err)
	_, err = s.rw.TryUpgrade(ann.Context(ctx))
	return program.Expect(err, rwlock.ErrUpgrade)
}

// release releases a hold and adds the error, which reports a loss before the end of the work, to
// err. The parts of this example have several holds at a time, which begin and end independently.
// For one hold call Do, which does the same.
func release(hold *recipes.Hold, err *error) { *err = errors.Join(*err, hold.Release()) }
