// Package page writes the pages of the comparison from its results.
package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/safety"
	"github.com/docent-zk/docent/test/compare/speed"
)

// Results are all results of a run.
type Results struct {
	Facts  []Fact
	Safety []safety.Row
	Speed  []speed.Row
}

// runs returns when the runs began that rows are of.
func (r *Results) runs() map[string]bool {
	all := map[string]bool{}
	for _, row := range r.Safety {
		all[row.Run] = true
	}
	for _, row := range r.Speed {
		all[row.Run] = true
	}
	return all
}

// Fact is a property of the machine or of the software.
type Fact struct{ Name, Value string }

// folder is below that of the pages.
const folder = "comparison"

func file(docs string) string { return filepath.Join(docs, folder, "results.json") }

// Save writes the results below the folder of the pages.
func (r *Results) Save(docs string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(docs, folder), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file(docs), append(text, '\n'), 0o644)
}

// Load reads what Save has written.
func Load(docs string) (*Results, error) {
	text, err := os.ReadFile(file(docs))
	if err != nil {
		return nil, err
	}
	r := &Results{}
	return r, json.Unmarshal(text, r)
}

// row returns a row that was run.
func (r *Results) row(kind string, fault safety.Fault) (safety.Row, error) {
	i := slices.IndexFunc(r.Safety, func(row safety.Row) bool { return row.Kind == kind && row.Fault == fault })
	if i < 0 {
		return safety.Row{}, fmt.Errorf("%s, %s: not in the results", kind, fault)
	}
	if reason := r.Safety[i].Reason; reason != "" {
		return safety.Row{}, fmt.Errorf("%s, %s: %s", kind, fault, reason)
	}
	return r.Safety[i], nil
}

// kinds returns the kinds of locks that are in the results.
func (r *Results) kinds() (all []peer.Kind) {
	for _, k := range peer.Kinds {
		if slices.ContainsFunc(r.Safety, func(row safety.Row) bool { return row.Kind == k.Name }) {
			all = append(all, k)
		}
	}
	return all
}

// cell returns a number of a row, and false if the lock has none.
func cell(row safety.Row, column string) (n int, ok bool, err error) {
	count := func(n *int) (int, bool, error) {
		if n == nil {
			return 0, false, nil
		}
		return *n, true, nil
	}
	truth := func(is bool) (int, bool, error) {
		if is {
			return 1, true, nil
		}
		return 0, true, nil
	}
	switch column {
	case "plain":
		return count(row.Plain)
	case "token":
		return count(row.Token)
	case "guard":
		return count(row.Guard)
	case "double":
		return truth(row.Double)
	case "kept":
		return truth(row.Kept)
	case "stuck":
		return truth(row.Stuck)
	case "refused":
		return truth(row.Refused)
	}
	return 0, false, fmt.Errorf("no column %q", column)
}
