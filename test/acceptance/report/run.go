package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// run is the output of one "go test -json".
type run struct {
	where  string
	tests  map[string]*test // by name; the name of a subtest is that of its test, a slash and more
	passed bool             // the package as a whole
	output strings.Builder  // that belongs to no test: compilers, TestMain, a crash
}

// test is the result of one test or subtest.
type test struct {
	name   string
	end    string // "pass", "fail", "skip"; "" if it did not end
	output strings.Builder
}

func (t *test) failed() bool { return t.end != "pass" && t.end != "skip" }

// event is a line of "go test -json".
type event struct{ Action, Test, Output string }

func readRun(where, file string) (*run, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := parseRun(where, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func parseRun(where string, from io.Reader) (*run, error) {
	r := &run{where: where, tests: map[string]*test{}}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.take(line)
		}
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// take adds a line. Tools that know nothing of -json print lines that are no events.
func (r *run) take(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		e = event{Action: "output", Output: string(line)}
	}
	if e.Test == "" {
		r.output.WriteString(e.Output)
		r.passed = r.passed || e.Action == "pass"
		return
	}
	t := r.tests[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		r.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		t.end = e.Action
	}
}

// failure prints the output of failed tests, and returns an error that names them. If the package
// failed and no test did, it prints the rest of the output.
func (r *run) failure(w io.Writer) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.tests)) {
		if t := r.tests[name]; t.failed() {
			fmt.Fprintf(w, "--- %s, %s\n%s", name, r.where, t.output.String())
			names = append(names, name)
		}
	}
	switch {
	case len(names) > 0:
		return fmt.Errorf("failed %s: %s", r.where, strings.Join(names, ", "))
	case !r.passed:
		fmt.Fprintf(w, "--- %s\n%s", r.where, r.output.String())
		return fmt.Errorf("failed %s, but no test did", r.where)
	}
	return nil
}

// complete returns an error if the run did not have all of these tests and no others.
func (r *run) complete(scenarios []scenario) error {
	var errs []error
	known := map[string]bool{}
	for _, s := range scenarios {
		known[s.test] = true
		if r.tests[s.test] == nil {
			errs = append(errs, fmt.Errorf("%s did not run %s", s.test, r.where))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.tests)) {
		if !strings.Contains(name, "/") && !known[name] {
			errs = append(errs, fmt.Errorf("%s ran %s, but there is no such test", name, r.where))
		}
	}
	return errors.Join(errs...)
}

// cases counts the innermost subtests of a test, by result. A slash in the name of one counts as
// the beginning of another.
func (r *run) cases(name string) (passed, failed, skipped int) {
	for _, t := range r.tests {
		if !strings.HasPrefix(t.name, name+"/") || r.hasCases(t.name) {
			continue
		}
		switch t.end {
		case "pass":
			passed++
		case "skip":
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}

func (r *run) hasCases(name string) bool {
	for other := range r.tests {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// state returns the result of a test, in words.
func (r *run) state(name string) string {
	t := r.tests[name]
	passed, failed, skipped := r.cases(name)
	switch {
	case t.end == "skip":
		return "not there: " + t.reason()
	case t.failed() && failed > 0:
		return fmt.Sprintf("fails, %d of %s", failed, count(passed+failed+skipped))
	case t.failed():
		return "fails"
	case passed+skipped == 0:
		return "passes"
	case skipped > 0:
		return fmt.Sprintf("passes, %s; %d not there", count(passed), skipped)
	}
	return "passes, " + count(passed)
}

func count(cases int) string {
	if cases == 1 {
		return "1 case"
	}
	return fmt.Sprintf("%d cases", cases)
}

var (
	reasons  = regexp.MustCompile(`(?m)(?:in-process only|real servers only): (.*)$`)
	messages = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)
)

// reason returns why a test was skipped.
func (t *test) reason() string {
	for _, words := range []*regexp.Regexp{reasons, messages} {
		if found := words.FindStringSubmatch(t.output.String()); found != nil {
			return strings.TrimSpace(found[1])
		}
	}
	return "no reason given"
}
