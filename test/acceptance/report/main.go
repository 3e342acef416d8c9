// Command report writes docs/acceptance.md: what users of coordination services suffer from, the tests that hold docent to its
// answer, and how these ended, in process and on a real server.
//
//	report -inprocess in.json -real real.json [-tests test/acceptance] [-out docs/acceptance.md] [-check]
//
// The two files are what "go test -json" said. The words come from the doc comments of the tests. With -check nothing is written, and
// it fails if the page is not what the runs say. In either case it fails if a test has, after showing what the test printed.
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
	flag.StringVar(&s.inProcess, "inprocess", "", "what go test -json said in process")
	flag.StringVar(&s.real, "real", "", "what go test -json said with a real server")
	flag.StringVar(&s.tests, "tests", "test/acceptance", "the package of the tests")
	flag.StringVar(&s.out, "out", "docs/acceptance.md", "the page")
	flag.BoolVar(&s.check, "check", false, "write nothing, and fail if the page is not what the runs say")
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

// report makes the page or compares it. What failed tests printed goes to w.
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

// compare says where the file differs from what it should be.
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
	return fmt.Errorf("%s is not what the runs say, from line %d on: run make acceptance-page\nit has:    %s\nthey say:  %s",
		file, line+1, at(is, line), at(should, line))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(its end)"
}
