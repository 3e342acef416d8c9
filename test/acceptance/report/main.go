// Command report writes docs/acceptance.md: the problems of users of coordination services, the
// tests of docent's answers to them, and the results in process and on a real server.
//
//	report -inprocess in.json -real real.json [-tests test/acceptance] [-out docs/acceptance.md] [-check]
//
// The two files are the output of "go test -json". The text comes from the doc comments of the
// tests. With -check report writes nothing, and fails if the page does not match the runs. In
// either case it prints the output of failed tests, and fails if there are any.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	var s settings
	flag.StringVar(&s.inProcess, "inprocess", "", "the output of go test -json in process")
	flag.StringVar(&s.real, "real", "", "the output of go test -json with a real server")
	flag.StringVar(&s.tests, "tests", "test/acceptance", "the package of the tests")
	flag.StringVar(&s.out, "out", "docs/acceptance.md", "the page")
	flag.BoolVar(&s.check, "check", false, "write nothing, and fail if the page does not match the runs")
	flag.Parse()
	if err := report(s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type settings struct {
	inProcess, real string // recorded runs
	tests           string // the folder of the tests
	out             string // the page
	check           bool
}

// report writes the page or compares it with the file. It prints the output of failed tests to w.
func report(s settings, w io.Writer) error {
	inProcess, err := readRun("in process", s.inProcess)
	if err != nil {
		return err
	}
	onReal, err := readRun("on the real server", s.real)
	if err != nil {
		return err
	}
	failed := errors.Join(inProcess.failure(w), onReal.failure(w))
	scenarios, err := readScenarios(s.tests)
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := errors.Join(inProcess.complete(scenarios), onReal.complete(scenarios)); err != nil {
		return errors.Join(failed, err)
	}
	page := render(scenarios, inProcess, onReal)
	if s.check {
		return errors.Join(failed, compare(s.out, page))
	}
	return errors.Join(failed, os.WriteFile(s.out, []byte(page), 0o644))
}

// compare returns an error that has the first line in which the file differs from want.
func compare(file, want string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: run make acceptance-page", err)
	}
	if string(content) == want {
		return nil
	}
	is, should := strings.Split(string(content), "\n"), strings.Split(want, "\n")
	line := 0
	for line < min(len(is), len(should)) && is[line] == should[line] {
		line++
	}
	return fmt.Errorf("%s does not match the runs, from line %d on: run make acceptance-page\nit has:    "+
		"%s\nwant:      %s",
		file, line+1, at(is, line), at(should, line))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(its end)"
}
