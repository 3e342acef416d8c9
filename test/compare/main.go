// Command compare compares locks: how fast they are, and whether they lose updates while something fails.
//
//	make compare          # within 20 minutes: writes docs/comparison.md, its translation and its plots
//	make compare-quick    # within three minutes: each fault once, with few locks; writes nothing
//
// It starts the services, and programs that use their locks, in processes of their own. Package peer
// has the programs, package service the services, package safety the faults, package page the text. It
// fails if a row contradicts theory, or the text of the page a row. The command runs in this folder.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/docent-zk/docent/test/compare/page"
	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/safety"
	"github.com/docent-zk/docent/test/compare/speed"
	"github.com/docent-zk/docent/test/compare/worker"
)

func main() {
	log.SetFlags(log.Ltime)
	if is, err := worker.Main(); is {
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	var o options
	flag.BoolVar(&o.quick, "quick", false, "run each fault once, with few locks, and write nothing")
	flag.StringVar(&o.service, "service", "", "run only the locks on this `service`, and keep the other results")
	flag.StringVar(&o.part, "part", "", "run only this `part`, safety or speed, and keep the other results")
	flag.BoolVar(&o.page, "page", false, "write the pages from the results of the last run")
	flag.StringVar(&o.docs, "docs", "../../docs", "the `folder` that the pages are written to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, o); err != nil {
		log.Fatalf("compare: %v", err)
	}
}

type options struct {
	quick, page         bool
	part, service, docs string
}

func compare(ctx context.Context, o options) error {
	began := time.Now()
	results := &page.Results{}
	if o.page || o.service+o.part != "" {
		old, err := page.Load(o.docs)
		if err != nil && o.page {
			return err
		}
		if err == nil {
			results = old
		}
	}
	var failed error
	if !o.page {
		failed = measure(ctx, o, results, began.UTC().Format(time.RFC3339))
		log.Printf("%d rows of safety and %d of speed in %v", len(results.Safety), len(results.Speed),
			time.Since(began).Round(time.Second))
	}
	if o.quick {
		return errors.Join(failed, check(results))
	}
	if err := errors.Join(failed, results.Save(o.docs)); err != nil {
		return err // what was measured before is saved
	}
	return errors.Join(check(results), results.Write(o.docs))
}

// check compares all rows with theory.
func check(results *page.Results) error {
	var errs []error
	for _, row := range results.Safety {
		errs = append(errs, safety.Check(row)...)
	}
	return errors.Join(errs...)
}

// atATime is the number of scenes that run at a time: they mostly wait.
const atATime = 10

// measure adds the rows of a run to results, also if it fails on the way.
func measure(ctx context.Context, o options, results *page.Results, run string) error {
	launcher, err := worker.NewLauncher(".")
	if err != nil {
		return err
	}
	defer launcher.Close()
	results.Facts = describe()
	names := services(o)
	if o.part != "speed" {
		rows, err := allSafety(ctx, safety.NewRunner(launcher, atATime, log.Printf), names, o)
		for i := range rows {
			rows[i].Run = run
		}
		merge(&results.Safety, rows, func(r safety.Row) string { return r.Kind })
		if err != nil {
			return err
		}
	}
	if o.part == "safety" {
		return nil
	}
	rows, err := allSpeed(ctx, launcher, names, o)
	for i := range rows {
		rows[i].Run = run
	}
	merge(&results.Speed, rows, func(r speed.Row) string { return r.Kind })
	return err
}

// services returns the names of the services, in the order of the kinds.
func services(o options) (names []string) {
	for _, k := range peer.Kinds {
		if !slices.Contains(names, k.Service) && (o.service == "" || o.service == k.Service) {
			names = append(names, k.Service)
		}
	}
	return names
}

// merge replaces the rows of kinds that were measured, and keeps the order of the kinds.
func merge[R any](all *[]R, measured []R, kind func(R) string) {
	*all = slices.DeleteFunc(*all, func(old R) bool {
		return slices.ContainsFunc(measured, func(r R) bool { return kind(r) == kind(old) })
	})
	*all = append(*all, measured...)
	place := func(r R) int {
		return slices.IndexFunc(peer.Kinds, func(k peer.Kind) bool { return k.Name == kind(r) })
	}
	slices.SortStableFunc(*all, func(a, b R) int { return place(a) - place(b) })
}

// quick is what compare-quick runs: each fault with docent and with a lock that loses, and one with each
// language and service, so that all of them work.
var quick = map[string][]safety.Fault{
	"docent":       safety.Faults,
	"zk-queue":     {safety.Pause, safety.WaiterDies},
	"redislock":    safety.Faults,
	"setnx-getset": {safety.Pause, safety.ClockAhead, safety.Overrun},
	"setnx-expire": {safety.KillAcquire, safety.Partition, safety.Wipe, safety.Failover, safety.ServerClock,
		safety.Delete},
	"curator":       {safety.Kill},
	"kazoo":         {safety.Kill},
	"etcdlock":      {safety.Partition},
	"redlock":       {safety.PauseLate},
	"sqllock-pg":    {safety.Pause},
	"sqllock-maria": {safety.Partition},
}

func wanted(o options) safety.Wanted {
	return func(k peer.Kind, f safety.Fault) bool { return !o.quick || slices.Contains(quick[k.Name], f) }
}

// allSafety runs the services at the same time: their programs mostly wait.
func allSafety(ctx context.Context, r *safety.Runner, names []string, o options) (rows []safety.Row, err error) {
	var running sync.WaitGroup
	var mu sync.Mutex
	for _, name := range names {
		running.Go(func() {
			some, failed := r.Run(ctx, name, wanted(o))
			mu.Lock()
			defer mu.Unlock()
			rows, err = append(rows, some...), errors.Join(err, failed)
		})
	}
	running.Wait()
	return rows, err
}

// allSpeed measures one service after another.
func allSpeed(ctx context.Context, l *worker.Launcher, names []string, o options) (rows []speed.Row, err error) {
	// Package ensemble has Java start fast and run slowly. Java reads this variable last.
	if err := os.Setenv("_JAVA_OPTIONS", "-XX:TieredStopAtLevel=4"); err != nil {
		return nil, err
	}
	r := speed.Runner{Launcher: l, Long: 2 * time.Second, Rounds: 20, Log: log.Printf}
	if o.quick {
		r.Long, r.Rounds = 100*time.Millisecond, 2
	}
	for _, name := range names {
		kinds := slices.DeleteFunc(slices.Clone(peer.Kinds), func(k peer.Kind) bool {
			return k.Service != name || o.quick && k.Name != "redislock"
		})
		if len(kinds) == 0 {
			continue
		}
		some, err := r.Measure(ctx, name, kinds)
		rows = append(rows, some...)
		if err != nil {
			return rows, err
		}
		for _, row := range some {
			if o.quick && len(row.Reasons) > 0 {
				return rows, errors.New(row.Kind + ": " + row.Reasons[0])
			}
		}
	}
	return rows, nil
}
