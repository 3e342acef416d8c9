// Command mutants breaks the code in turn and requires that a test fails each time. It inverts
// conditions, moves the limits of comparisons, leaves statements out, and drops errors.
//
//	mutants [-package TEXT] [-file TEXT] [-tests "FOLDER PATTERN"] [-again] [-save] [-v] [-list]
//
// A mutant that no test finds has to be explained in explained.txt, with the reason why it changes
// nothing that is promised. The run fails if one is not explained, or if the explanation of one that
// is found is still there.
//
// All mutants of a package are compiled at once, by "go test -overlay"; an environment variable says
// which one is active. Each is tried with the tests that reach it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	explanations = "test/mutants/explained.txt"
	scores       = "test/mutants/score.json"
)

func main() {
	var s settings
	flag.StringVar(&s.packages, "package", "", "only packages whose folder contains this")
	flag.StringVar(&s.files, "file", "", "only files whose name contains this")
	flag.StringVar(&s.tests, "tests", "", "a package, and a pattern of its tests, instead of those of the table")
	flag.BoolVar(&s.again, "again", false, "only those that no test found in the run that was saved last")
	flag.BoolVar(&s.save, "save", false, "write "+scores)
	flag.BoolVar(&s.verbose, "v", false, "print each mutant")
	flag.BoolVar(&s.list, "list", false, "print all mutants, and try none")
	flag.IntVar(&s.workers, "workers", 2, "how many mutants are tried at a time")
	flag.Parse()
	if err := run(s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type settings struct {
	packages, files string
	tests           string
	again           bool
	save, verbose   bool
	list            bool
	workers         int
}

func run(s settings, w io.Writer) error {
	explained, err := readExplanations(explanations)
	if err != nil {
		return err
	}
	all, err := readScores(scores)
	if err != nil {
		return err
	}
	var wrong []error
	for _, t := range targets {
		if !strings.Contains(t.folder, s.packages) {
			continue
		}
		if s.list {
			if err := list(t.folder, w); err != nil {
				return err
			}
			continue
		}
		began := time.Now()
		byFile, err := t.try(s, all, w)
		if err != nil {
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		for _, file := range slices.Sorted(maps.Keys(byFile)) {
			score, err := judge(file, byFile[file], explained)
			if s.again {
				score = score.since(all[file])
			}
			fmt.Fprintf(w, "%s: %v\n", file, score)
			all[file] = score
			wrong = append(wrong, err)
		}
		fmt.Fprintf(w, "%s took %v\n", t.folder, time.Since(began).Round(time.Second))
		if s.save {
			wrong = append(wrong, writeScores(scores, all))
		}
	}
	return errors.Join(wrong...)
}

// list prints the mutants of a package.
func list(folder string, w io.Writer) error {
	source, err := instrument(folder)
	if err != nil {
		return err
	}
	for _, m := range source.mutants {
		fmt.Fprintf(w, "%d %s\n", m.id, m.key())
	}
	return nil
}

// score says how many mutants of a file there are, and what became of them.
type score struct {
	Mutants     int // all of them
	Found       int // a test fails
	Hung        int // a test does not end
	Explained   int // no test fails, and the reason is known
	Open        int // no test fails, because there is none yet
	Unexplained int
	Survivors   []string // the keys of those that no test has found
}

// since adds those that were found in the last run, if s is of the others only.
func (s score) since(last score) score {
	s.Found += last.Found
	s.Hung += last.Hung
	s.Mutants += last.Found + last.Hung
	return s
}

func (s score) String() string {
	return fmt.Sprintf("%d mutants, %d found, %d found by a test that does not end, %d explained, "+
		"%d without a test yet, %d not explained", s.Mutants, s.Found, s.Hung, s.Explained, s.Open, s.Unexplained)
}

// noTest begins the reason of a mutant that breaks something for which there is no test yet.
const noTest = "No test yet"

// judge returns the score of a file. The error has all mutants that are not explained, and the explanations
// that are not needed.
func judge(file string, results []result, explained map[string]string) (s score, err error) {
	var wrong []error
	survivors := map[string]bool{}
	for _, r := range results {
		s.Mutants++
		reason, known := explained[r.key()]
		switch {
		case r.outcome == found:
			s.Found++
		case r.outcome == hung:
			s.Hung++
		case known && strings.HasPrefix(reason, noTest):
			s.Open++
			s.Survivors = append(s.Survivors, r.key())
			survivors[r.key()] = true
		case known:
			s.Explained++
			s.Survivors = append(s.Survivors, r.key())
			survivors[r.key()] = true
		default:
			s.Unexplained++
			s.Survivors = append(s.Survivors, r.key())
			wrong = append(wrong, fmt.Errorf("not found (%s, line %d):\n%s", r.outcome, r.line, r.key()))
		}
	}
	for key := range explained {
		if strings.HasPrefix(key, file+": ") && !survivors[key] {
			wrong = append(wrong, fmt.Errorf("explained, but found by a test, or not there any more:\n%s", key))
		}
	}
	return s, errors.Join(wrong...)
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
