// Command bench measures docent beside its peers: the Go driver, Curator, kazoo and etcd, on the same real servers in the same run.
//
//	make bench          # within a quarter of an hour: writes docs/benchmarks.md and its plots
//	make bench-quick    # within two minutes: prints the targets, and writes nothing
//
// Package peer says what peers are and do, package report what comes of it. The command runs in this folder. It does not fail because of a
// target that is missed, or a peer that cannot be had.
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
	quick := flag.Bool("quick", false, "measure for two minutes, and only print the targets")
	rounds := flag.Int("rounds", 0, "how often each peer has its turn; 0 for what is usual")
	long := flag.Duration("time", 0, "how long a turn is; 0 for what is usual")
	only := flag.String("only", "", "measure only workloads whose names contain this")
	docs := flag.String("docs", "../../docs", "the `folder` that the page is written to")
	profile := flag.String("profile", "", "write a profile of docent's peer, of its use of the processors, to this `file`")
	self := flag.String("peer", "", "be the peer of this `name`, for the command's own use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *self != "" {
		signal.Ignore(os.Interrupt) // the one who drives us ends us
		err = profiled(*profile, func() error { return peer.Serve(context.Background(), *self, os.Stdin, os.Stdout) })
	} else {
		err = bench(ctx, wish{effort: usual(*quick, *rounds, *long), quick: *quick, only: *only, docs: *docs, profile: *profile})
	}
	if err != nil {
		log.Fatalf("bench: %v", err)
	}
}

// usual fills in what was not asked for.
func usual(quick bool, rounds int, long time.Duration) effort {
	e := effort{rounds: 7, few: 3, long: 300 * time.Millisecond, budget: 14 * time.Minute}
	if quick {
		e = effort{rounds: 3, few: 1, long: 100 * time.Millisecond, budget: 80 * time.Second}
	}
	if rounds > 0 {
		e.rounds = rounds
	}
	if long > 0 {
		e.long = long
	}
	return e
}

// profiled writes a profile of what fn does, if there is a file for it.
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

// wish is what the command line says.
type wish struct {
	effort
	quick   bool
	only    string // a part of the names of the workloads that are wanted
	docs    string
	profile string
}

func bench(ctx context.Context, w wish) error {
	began := time.Now()
	c, err := muster(ctx, w.profile)
	if err != nil {
		return err
	}
	defer c.dismiss()
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

// inSetting measures everything in one setting.
func inSetting(ctx context.Context, c *crew, s *report.Setting, wanted wish, began time.Time) (all []*report.Series, err error) {
	b, err := build(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	m := &measurer{setting: s.Name, peers: c.all, place: b, effort: wanted.effort}
	hold := 5 * time.Millisecond // until more is known
	for _, w := range plan(*s) {
		if !strings.Contains(w.name, wanted.only) {
			continue
		}
		if time.Since(began) > wanted.budget {
			log.Printf("%s, %s: left out, there is no time", s.Name, w.name)
			continue
		}
		start := time.Now()
		series, err := m.measure(ctx, w.holding(hold))
		if err != nil {
			return nil, err
		}
		log.Printf("%s, %s: %v", s.Name, w.name, time.Since(start).Round(100*time.Millisecond))
		if floor := series[0]; w.name == "mutex" && len(floor.Rounds) > 0 {
			hold = time.Millisecond + 2*floor.P50() // longer than it takes to get in line
		}
		all = append(all, series...)
	}
	return all, nil
}

// show prints everything, the targets last.
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
