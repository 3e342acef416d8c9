// Command trackrecord takes the mends of former defects back, one at a time, and requires that a test
// fails each time. It also writes docs/track-record.md.
//
//	trackrecord [-only TEXT] [-fails] [-servers]   take mends back, run the tests
//	trackrecord -page                              write the page, with the scores of test/mutants
//
// A mend is taken back by a patch in the folder patches, in a copy of the files that the patch names.
// The files of the repository stay as they are. The tests run with "go test -overlay", and a build
// cache that is deleted at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/docent-zk/docent/internal/overlay"
)

const (
	folder = "test/trackrecord/patches"
	page   = "docs/track-record.md"
)

func main() {
	only := flag.String("only", "", "only the defects whose name contains this")
	onlyFails := flag.Bool("fails", false, "do not run the tests without the patch")
	servers := flag.Bool("servers", false, "only the defects that real servers show, instead of all others")
	writePage := flag.Bool("page", false, "write "+page+", and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, *only, *onlyFails, *servers, *writePage)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(ctx context.Context, only string, onlyFails, servers, writePage bool) error {
	if writePage {
		text, err := render(defects)
		if err != nil {
			return err
		}
		return os.WriteFile(page, []byte(text), 0o644)
	}
	chosen := choose(defects, only, servers)
	if len(chosen) == 0 {
		return fmt.Errorf("no defect has a name that contains %q", only)
	}
	return runAll(ctx, os.Stdout, chosen, !onlyFails)
}

// choose returns the defects whose names contain a text, and that need real servers or do not.
func choose(all []defect, only string, servers bool) (chosen []defect) {
	for _, d := range all {
		if strings.Contains(d.name, only) && (d.servers != "") == servers {
			chosen = append(chosen, d)
		}
	}
	return chosen
}

// runAll takes the mends back and prints one line for each. The error has all that are wrong.
func runAll(ctx context.Context, w io.Writer, chosen []defect, alsoMended bool) (err error) {
	dir, err := overlay.New("trackrecord")
	if err != nil {
		return err
	}
	defer dir.Remove(&err)
	start := time.Now()
	var wrong []error
	for _, d := range chosen {
		began := time.Now()
		err := d.verify(ctx, dir, alsoMended)
		if ctx.Err() != nil {
			return errors.Join(append(wrong, ctx.Err())...)
		}
		result := "found"
		if err != nil {
			result = "WRONG"
			wrong = append(wrong, fmt.Errorf("%s: %w", d.name, err))
		}
		fmt.Fprintf(w, "%s %5.1fs  %s\n", result, time.Since(began).Seconds(), d.name)
	}
	fmt.Fprintf(w, "%d of %d defects are found, in %v\n", len(chosen)-len(wrong), len(chosen),
		time.Since(start).Round(time.Second))
	return errors.Join(wrong...)
}
