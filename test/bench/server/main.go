// Command server compares the throughput of zktest with that of the real server, both on loopback
// TCP in one run on one machine.
//
//	make bench-server    # or, in test/bench, go run ./server -rounds 7 -time 2s
//
// A client creates and deletes a node repeatedly. Each of the two counts as an operation. The
// servers take turns, and the first round only warms them up. The real server has the setup of
// package ensemble, which does not wait for the disk. Unlike there, it may compile its code fully
// and does not slow down clients that send many requests. The client and zktest share a process,
// and all share the processors. So the numbers only compare the servers with each other.
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

// load is a number of clients, each with a number of requests in flight.
type load struct {
	name    string
	clients int
	window  int // requests in flight of each client
}

var loads = []load{
	{"1 client, 64 in flight", 1, 64},
	{"32 clients, 64 in flight each", 32, 64},
	{"1 client, 1 in flight", 1, 1},
}

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 7, "how often each server is measured with each load")
	long := flag.Duration("time", 2*time.Second, "duration of each measurement")
	profile := flag.String("profile", "", "measure zktest alone, and write a CPU profile to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *rounds < 1 || *long <= 0:
		err = fmt.Errorf("%d rounds of %v: want at least one, and a positive duration", *rounds, *long)
	case *profile != "":
		err = runProfiled(ctx, *rounds, *long, *profile)
	default:
		err = run(ctx, *rounds, *long)
	}
	if err != nil {
		log.Fatalf("server: %v", err)
	}
}

// run compares the servers and prints the results.
func run(ctx context.Context, rounds int, long time.Duration) (err error) {
	theirs, err := startReal(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()
	ours, err := startFake()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	results, err := measure(ctx, []*server{theirs, ours}, rounds, long)
	if err != nil {
		return err
	}
	describe(os.Stdout)
	report(os.Stdout, results)
	return nil
}

// result is the operations per second with one load, by server and round.
type result struct {
	load
	servers []*server
	rates   [][]float64
}

// warmUp is the factor by which the round that does not count is longer.
const warmUp = 3

// measure uses all loads in every round. The servers take turns at being first. Round 0 does not
// count.
func measure(ctx context.Context, servers []*server, rounds int, long time.Duration) ([]result, error) {
	results := make([]result, len(loads))
	for i, l := range loads {
		results[i] = result{l, servers, make([][]float64, len(servers))}
	}
	for round := range rounds + 1 {
		duration := long
		if round == 0 {
			duration = warmUp * long
		}
		for _, r := range results {
			for i := range servers {
				turn := (i + round) % len(servers)
				rate, err := drive(ctx, servers[turn].addr, r.load, duration)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", servers[turn].name, r.name, err)
				}
				if round > 0 {
					r.rates[turn] = append(r.rates[turn], rate)
				}
			}
		}
	}
	return results, nil
}
