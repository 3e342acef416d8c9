// Command limits measures how large the locks of one real server become: their part of a snapshot and
// of the server's memory, and how fast the server deletes directories of locks. docs/scaling.md has its
// results.
//
//	cd test/bench && go run ./limits
//
// The memory is that of live objects, by jmap of the JDK. No number depends on the speed of the machine
// but the time of a restart.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"
)

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 100_000, "number of paths, of held locks and of watches")
	sessions := flag.Int("sessions", 2000, "number of sessions")
	reaped := flag.Int("reaped", 3000, "number of directories that the server deletes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := errors.Join(sizes(ctx, *n, *sessions), deletions(ctx, *reaped))
	if err != nil {
		log.Fatalf("limits: %v", err)
	}
}

// sizes prints the sizes of paths, held locks, sessions and watches.
func sizes(ctx context.Context, n, sessions int) (err error) {
	s, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Println("| what | in a snapshot | memory of the server |\n|---|---|---|")
	for _, kind := range []struct {
		name   string
		n      int
		create func(context.Context, int) error
	}{
		{"a path without a lock node", n, s.paths},
		{"a held lock, without its path", n, s.locks},
		{"a watch", n, s.watches},
		{"a session with its connection", sessions, s.connect},
	} {
		before, err := s.size(ctx)
		if err != nil {
			return err
		}
		if err := kind.create(ctx, kind.n); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		after, err := s.size(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.0f B | %.0f B |\n", kind.name,
			each(after.snapshot-before.snapshot, kind.n), each(after.heap-before.heap, kind.n))
	}
	took, err := s.restart(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nrestart with %d paths, each with a held lock: %v\n", n, took.Round(10*time.Millisecond))
	return nil
}

func each(bytes int64, n int) float64 { return float64(bytes) / float64(n) }

// deletions prints how many empty directories of locks the server deletes in a minute.
func deletions(ctx context.Context, n int) (err error) {
	s, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.used(ctx, n); err != nil {
		return err
	}
	first, last, err := s.deleted(ctx)
	if err != nil {
		return err
	}
	perMinute := float64(first.left-last.left) / last.at.Sub(first.at).Minutes()
	fmt.Printf("directories of locks that the server deletes in a minute: %.0f\n", perMinute)
	return nil
}
