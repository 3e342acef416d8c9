// Command bench measures docent and its peers: the Go driver, Curator, kazoo and etcd, on the same
// real servers in the same run.
//
//	make bench          # within twenty minutes: writes docs/benchmarks.md and its plots
//	make bench-quick    # within three minutes: prints the targets, and writes nothing
//
// Package peer describes the peers and their work, package report the results. The command runs in
// this folder. It does not fail if a target is missed or a peer is not available.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

func main() {
	log.SetFlags(0)
	quick := flag.Bool("quick", false, "measure for less than three minutes, and only print the targets")
	rounds := flag.Int("rounds", 0, "rounds of each peer; 0 for the default")
	long := flag.Duration("time", 0, "duration of a turn; 0 for the default")
	sessions := flag.Int("sessions", 0, "number of idle sessions; 0 for the default")
	only := flag.String("only", "", "measure only workloads whose names contain this")
	docs := flag.String("docs", "../../docs", "the `folder` that the page is written to")
	profile := flag.String("profile", "", "write a CPU profile of docent's peer to this `file`")
	self := flag.String("peer", "", "run as the peer of this `name`, for the command's own use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *self != "" {
		signal.Ignore(os.Interrupt) // the benchmark ends its peers
		err = profiled(*profile, func() error { return peer.Serve(context.Background(), *self, os.Stdin, os.Stdout) })
	} else {
		err = bench(ctx, options{
			effort: usual(*quick, *rounds, *sessions, *long),
			quick:  *quick, only: *only, docs: *docs, profile: *profile,
		})
	}
	if err != nil {
		log.Fatalf("bench: %v", err)
	}
}

// usual replaces parameters that were not given by their defaults.
func usual(quick bool, rounds, sessions int, long time.Duration) effort {
	e := effort{rounds: 7, few: 3, long: 300 * time.Millisecond, budget: 19 * time.Minute,
		many: many{paths: 1_000_000, sessions: 2000}}
	if quick {
		e = effort{rounds: 3, few: 1, long: 100 * time.Millisecond, budget: 110 * time.Second,
			many: many{paths: 20_000, sessions: 500}}
	}
	if rounds > 0 {
		e.rounds = rounds
	}
	if sessions > 0 {
		e.many.sessions = sessions
	}
	if long > 0 {
		e.long = long
	}
	return e
}

// profiled calls fn and writes a profile of it, if there is a file for it.
func profiled(file string, fn func() error) (err error) {
	if file == "" {
		return fn()
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return fn()
}

// options is the options of the command line.
type options struct {
	effort
	quick   bool
	only    string // a part of the names of the wanted workloads
	docs    string
	profile string
}

func bench(ctx context.Context, w options) error {
	began := time.Now()
	c, err := startPeers(ctx, w.profile)
	if err != nil {
		return err
	}
	defer c.endAll()
	r := &report.Report{Facts: describe(c), Settings: settings}
	if w.quick {
		r.Settings = settings[:1]
	}
	if r.Requests, err = exactRequests(ctx); err != nil {
		return err
	}
	if r.Counts, err = countRequests(c.all); err != nil {
		return err
	}
	for i := range r.Settings {
		series, err := inSetting(ctx, c, &r.Settings[i], w, began)
		if err != nil {
			return err
		}
		r.Series = append(r.Series, series...)
	}
	show(r)
	if w.quick || w.only != "" {
		return nil
	}
	return r.Write(w.docs)
}

// inSetting measures all workloads in one setting.
func inSetting(ctx context.Context, c *peerGroup, s *report.Setting, wanted options,
	began time.Time) (all []*report.Series, err error) {
	b, err := build(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	m := &measurer{setting: s.Name, peers: c.all, effort: wanted.effort}
	if s.Fsync {
		m.effort.long *= 2 // fewer operations fit into the same time
	}
	hold := 5 * time.Millisecond // until the mutex has been measured
	for _, w := range plan(*s, wanted.many) {
		if !strings.Contains(w.name, wanted.only) {
			continue
		}
		if time.Since(began) > wanted.budget {
			log.Printf("%s, %s: left out for lack of time", s.Name, w.name)
			continue
		}
		start := time.Now()
		series, err := measureAt(ctx, b, m, w.holding(hold))
		if err != nil {
			return nil, err
		}
		log.Printf("%s, %s: %v", s.Name, w.name, time.Since(start).Round(100*time.Millisecond))
		if floor := series[0]; w.name == "mutex" && len(floor.Rounds) > 0 {
			hold = time.Millisecond + 2*floor.P50() // longer than it takes to join the queue
		}
		all = append(all, series...)
	}
	return all, nil
}

// measureAt measures a workload on the servers that it is for.
func measureAt(ctx context.Context, b *site, m *measurer, w workload) ([]*report.Series, error) {
	here, leave, err := b.at(ctx, w)
	if err != nil {
		return nil, err
	}
	defer leave()
	m.place = here
	return m.measure(ctx, w)
}

// show prints all results, the targets last.
func show(r *report.Report) {
	for _, s := range r.Settings {
		for _, t := range r.Results(s.Name) {
			fmt.Printf("%s, %s\n%s\n", s.Name, t.Title, t.Text())
		}
	}
	for _, f := range r.Facts {
		fmt.Printf("%-10s %s\n", f.Name+":", f.Value)
	}
	for _, s := range r.Settings {
		fmt.Printf("%-10s %s, in %s\n", s.Name+":", s.Title(), s.Dir)
	}
	fmt.Printf("\n%s", r.Targets().Text())
}
