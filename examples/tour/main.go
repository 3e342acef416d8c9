// Tour walks through the recipes, one chapter each, on a ZooKeeper server in its own process. Each
// line of a chapter is a call and its result.
//
//	go run ./examples/tour                     # takes about a minute
//	go run ./examples/tour -fast               # does not wait until a line can be read
//	go run ./examples/tour -only leader,group  # has some of the chapters
//
// On a terminal the output has colours. The environment variable NO_COLOR turns them off. Without a
// terminal the tour does not wait.
//
// tour.go has what all chapters use. The chapters are in locks.go (mutex, rwlock, semaphore,
// multilock, striped), ensembles.go, losses.go (what a hold tells when it is lost), election.go (leader),
// meetings.go (barrier, counter, condition), nodes.go (cache, persistent), and services.go (group,
// discovery, inspect).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/docent-zk/docent/examples/internal/program"
)

// chapter is the part of the tour about one package.
type chapter struct {
	name string // of the package
	text string
	run  func(ctx context.Context, t *tour) error
}

var chapters = []chapter{
	{"mutex", "a lock that one client holds at a time", showMutex},
	{"rwlock", "many readers or one writer", showReadWriteLock},
	{"semaphore", "a limited number of permits", showSemaphore},
	{"multilock", "several locks, all or none", showMultiLock},
	{"striped", "a lock for each of any number of keys", showStriped},
	{"ensembles", "each name has one of several ensembles", showEnsembles},
	{"fence", "what protects the data when a hold is lost", showLoss},
	{"leader", "one of several candidates leads", showLeader},
	{"barrier", "clients that wait for each other", showBarrier},
	{"counter", "numbers that clients share", showCounter},
	{"condition", "what the holder of a mutex waits for", showCondition},
	{"cache", "a part of the tree in memory", showCache},
	{"persistent", "a node that comes back", showPersistent},
	{"group", "which processes are there", showGroup},
	{"discovery", "the instances of a service", showDiscovery},
	{"inspect", "what operators see", showInspect},
}

func main() {
	fast := flag.Bool("fast", false, "do not wait until a line can be read")
	only := flag.String("only", "", "the `chapters` to show, separated by commas: "+names())
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, screen(ctx, os.Stdout, *fast), *only, flag.Args())
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// screen returns where the output goes.
func screen(ctx context.Context, stdout io.Writer, fast bool) io.Writer {
	out := program.Coloured(stdout, colours...)
	if fast || !program.IsTerminal(stdout) {
		return out
	}
	return program.Slowly(ctx, out)
}

// names returns the names of all chapters.
func names() string {
	list := make([]string, len(chapters))
	for i, c := range chapters {
		list[i] = c.name
	}
	return strings.Join(list, ",")
}

// run shows the chapters that only names, all if it is empty.
func run(ctx context.Context, out io.Writer, only string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	selected, err := choose(only)
	if err != nil {
		return err
	}
	for _, c := range selected {
		if err := show(ctx, out, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	const end = "\nThe doc comments of the packages say the rest: go doc github.com/docent-zk/docent\n"
	_, err = io.WriteString(out, end)
	return err
}

func choose(only string) ([]chapter, error) {
	if only == "" {
		return chapters, nil
	}
	var selected []chapter
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(chapters, func(c chapter) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: no chapter %q: want some of %s", name, names())
		}
		selected = append(selected, chapters[i])
	}
	return selected, nil
}
