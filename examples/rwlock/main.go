// Rwlock shows a lock that any number of readers share, or one writer has alone: Curator's InterProcessReadWriteLock.
//
//	go run ./examples/rwlock                          # is its own ZooKeeper server, for tests
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
	// The path is random only because nobody else is to take part in this story.
	rw, err := rwlock.New(client, "/docent-examples/rwlock-"+rand.Text())
	if err != nil {
		return err
	}
	s := &shop{rw: rw, out: out}
	for _, scene := range []func(context.Context) error{s.share, s.write, s.downgrade, s.upgrade} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shop has a price, which the lock protects. Ann and Bob could be two processes: all that makes an acquire Ann's is the context of a hold
// of hers, where in Curator it is the thread.
type shop struct {
	rw    *rwlock.RWLock
	price int
	out   io.Writer
}

// share: readers are inside at the same time, and keep writers out.
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

// write: a writer is alone. Bob, who comes meanwhile, waits in line.
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
	return errors.Join(err, ann.Release(), <-bob) // Release before waiting for Bob, who waits for that
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

// downgrade: a writer becomes a reader, and no other writer comes in between.
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

// writeAndRead returns the read hold of somebody who has written. What is done under that needs its own context: that of the write hold
// ends here.
func (s *shop) writeAndRead(ctx context.Context) (reading *recipes.Hold, err error) {
	writing, err := s.rw.Write().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release(writing, &err)
	s.price++
	return s.rw.Read().Acquire(writing.Context(ctx)) // is let in at once: the context says that it is the writer who asks
}

// upgrade: a reader becomes a writer, if nobody else reads. Curator has no counterpart: there a reader who asks for the write lock waits
// for himself, for ever. Here Acquire would be refused, as TryUpgrade is while Bob reads.
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

// release gives a lock back, and adds to err what that says: it tells if the lock was lost before the work was done.
func release(hold *recipes.Hold, err *error) { *err = errors.Join(*err, hold.Release()) }
