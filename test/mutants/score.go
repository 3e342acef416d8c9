package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// score says how many mutants of one kind there are in a file, and what became of them.
type score struct {
	Mutants     int // all of them
	Found       int // a test fails
	Hung        int // a test does not end
	Explained   int // no test fails, and the reason is known
	Open        int // no test fails, because there is none yet
	Unexplained int
	Untried     int
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

// judge returns the score of the mutants of one kind in a file. The error has all that are not explained, and
// the explanations of those that were found.
func judge(results []result, explained map[string]string) (s score, err error) {
	var wrong []error
	for _, r := range results {
		s.Mutants++
		reason, known := explained[r.key()]
		switch r.outcome {
		case found, hung:
			if known {
				wrong = append(wrong, fmt.Errorf("explained, but found by a test:\n%s", r.key()))
			}
			if r.outcome == hung {
				s.Hung++
			} else {
				s.Found++
			}
			continue
		}
		s.Survivors = append(s.Survivors, r.key())
		switch {
		case known && strings.HasPrefix(reason, noTest):
			s.Open++
		case known:
			s.Explained++
		default:
			s.Unexplained++
			wrong = append(wrong, fmt.Errorf("not found (%s, line %d):\n%s", r.outcome, r.line, r.key()))
		}
	}
	return s, errors.Join(wrong...)
}

// scoreTable has the scores of the last runs by file and kind.
type scoreTable map[string]map[kind]score

// set sets the score of the mutants of a kind in a file.
func (all scoreTable) set(file string, k kind, s score) {
	if all[file] == nil {
		all[file] = map[kind]score{}
	}
	all[file][k] = s
}

func readScores(name string) (scoreTable, error) {
	all := scoreTable{}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

func (all scoreTable) write(name string) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
