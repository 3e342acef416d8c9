// Command mutants breaks the code in turn and requires that a test fails each time. It inverts
// conditions, moves the limits of comparisons, leaves statements out, and drops errors.
//
//	mutants [-package TEXT] [-file TEXT] [-kind KIND] [-tests "FOLDER PATTERN"] [-again] [-save] [-v] [-list]
//
// A mutant that no test finds has to be explained in explained.txt, with the reason why it changes
// nothing that is promised. The run fails if one is not explained, or if the explanation of one that
// is found is still there.
//
// All mutants of a package are compiled at once, by "go test -overlay", with a build cache that is
// deleted at the end. An environment variable says which one is active. Each is tried with the tests
// that reach it. A run that is interrupted keeps the scores of the files that it has finished.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/docent-zk/docent/internal/overlay"
)

const (
	explanations = "test/mutants/explained.txt"
	scores       = "test/mutants/score.json"
)

func main() {
	var s settings
	flag.StringVar(&s.packages, "package", "", "only packages whose folder contains this")
	flag.StringVar(&s.files, "file", "", "only files whose name contains this")
	flag.StringVar(&s.kind, "kind", "", "only mutants of this kind: conditions, statements or errors")
	flag.StringVar(&s.tests, "tests", "", "a package, and a pattern of its tests, instead of those of the table")
	flag.BoolVar(&s.again, "again", false, "only those that no test found in the run that was saved last")
	flag.BoolVar(&s.save, "save", false, "write "+scores)
	flag.BoolVar(&s.verbose, "v", false, "print each mutant")
	flag.BoolVar(&s.list, "list", false, "print all mutants, and try none")
	flag.IntVar(&s.workers, "workers", 2, "how many mutants are tried at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type settings struct {
	packages, files string
	kind            string
	tests           string
	again           bool
	save, verbose   bool
	list            bool
	workers         int
}

// includes reports whether mutants of a kind in a file are to be tried.
func (s settings) includes(file string, k kind) bool {
	return strings.Contains(file, s.files) && (s.kind == "" || s.kind == string(k))
}

func run(ctx context.Context, s settings, w io.Writer) (err error) {
	if s.kind != "" && !slices.Contains(kinds, kind(s.kind)) {
		return fmt.Errorf("there is no kind %q", s.kind)
	}
	explained, err := readExplanations(explanations)
	if err != nil {
		return err
	}
	all, err := readScores(scores)
	if err != nil {
		return err
	}
	dir, err := overlay.New("mutants")
	if err != nil {
		return err
	}
	defer dir.Remove(&err)
	var wrong []error
	for _, t := range targets {
		if !strings.Contains(t.folder, s.packages) {
			continue
		}
		source, err := instrument(t.folder)
		if err != nil {
			return err
		}
		wrong = append(wrong, source.checkExplained(t.folder, explained))
		if s.list {
			source.list(s, w)
			continue
		}
		if !slices.ContainsFunc(source.mutants, func(m mutant) bool { return s.includes(m.file, m.kind) }) {
			continue
		}
		began := time.Now()
		r := &runner{settings: s, target: t, dir: dir, w: w}
		if r.tests, err = r.build(ctx, source); err != nil {
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		err = r.all(ctx, source, all, explained)
		wrong = append(wrong, err)
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(w, "%s took %v\n", t.folder, time.Since(began).Round(time.Second))
	}
	return errors.Join(wrong...)
}

// list prints the mutants.
func (s *source) list(of settings, w io.Writer) {
	for _, m := range s.mutants {
		if of.includes(m.file, m.kind) {
			fmt.Fprintf(w, "%d %s\n", m.id, m.key())
		}
	}
}

// checkExplained returns an error for each explanation of a mutant that is not there.
func (s *source) checkExplained(folder string, explained map[string]string) error {
	var wrong []error
	for key := range explained {
		file, _, _ := strings.Cut(key, ": ")
		if path.Dir(file) == folder && !slices.ContainsFunc(s.mutants, func(m mutant) bool { return m.key() == key }) {
			wrong = append(wrong, fmt.Errorf("explained, but not there:\n%s", key))
		}
	}
	return errors.Join(wrong...)
}

// readExplanations returns the reasons by the keys of mutants. A reason is indented, below its key.
func readExplanations(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	explained, key := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			key = trimmed
			explained[key] = ""
		case key == "":
			return nil, fmt.Errorf("%s: a reason without a mutant: %s", name, trimmed)
		default:
			explained[key] = strings.TrimSpace(explained[key] + " " + trimmed)
		}
	}
	for key, reason := range explained {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason for %s", name, cmp.Or(key, "?"))
		}
	}
	return explained, nil
}
