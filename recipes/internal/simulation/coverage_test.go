package simulation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docent-zk/docent/zktest/fault"
)

// request is a kind of request that a recipe sends.
type request struct {
	name      string
	op        fault.Op
	path      string // see fault.Match
	reconnect bool   // it is sent after a reconnect
	rare      bool   // a campaign may never meet it
}

func (r request) match() fault.Match { return fault.Match{Op: r.op, Path: r.path} }

// exactly returns a pattern that matches one path only. A path alone matches all that begin with it.
func exactly(path string) string { return path[:len(path)-1] + "[" + path[len(path)-1:] + "]" }

// ofQueue returns the requests of waiters and holders whose nodes are in a directory.
func ofQueue(dir string) []request {
	return []request{
		{name: "create", op: fault.OpCreate, path: dir + "/"},
		{name: "create with parents", op: fault.OpMulti, path: exactly(dir)},
		{name: "list", op: fault.OpGetChildren2, path: dir},
		{name: "watch predecessor", op: fault.OpGetData, path: dir + "/"},
		{name: "watch hold", op: fault.OpExists, path: dir + "/"},
		{name: "delete", op: fault.OpDelete, path: dir + "/"},
	}
}

// ofHandedOn returns the requests of a queue whose nodes are part of other transactions: those of Guard,
// of hand-offs and of positions.
func ofHandedOn(dir string) []request {
	return append(ofQueue(dir), request{name: "transaction", op: fault.OpMulti, path: dir + "/"})
}

// ofPermits returns the requests of a semaphore. Those that take or release several permits and those of
// Guard are transactions.
func ofPermits(path string) []request {
	return []request{
		{name: "create directories", op: fault.OpCreateContainer, path: path},
		{name: "look for nodes", op: fault.OpExists, path: path + "/"},
		{name: "create", op: fault.OpCreate, path: path + "/locks/"},
		{name: "list", op: fault.OpGetChildren2, path: path + "/locks"},
		{name: "list permits", op: fault.OpGetChildren2, path: path + "/leases"},
		{name: "watch predecessor", op: fault.OpGetData, path: path + "/locks/"},
		{name: "transaction", op: fault.OpMulti, path: path + "/"},
		{name: "delete", op: fault.OpDelete, path: path + "/"},
	}
}

// ofLimit are the requests of a semaphore with a limit that is data of a node.
var ofLimit = []request{
	{name: "read limit", op: fault.OpGetData, path: limitPath},
	{name: "check limit", op: fault.OpMulti, path: limitPath},
	{name: "set limit", op: fault.OpSetData, path: limitPath},
}

// ofNodes returns the requests of a recipe that keeps nodes in a directory.
func ofNodes(dir string) []request {
	return []request{
		{name: "create", op: fault.OpCreate, path: dir + "/"},
		{name: "create with parents", op: fault.OpMulti, path: exactly(dir)},
		{name: "set", op: fault.OpSetData, path: dir + "/"},
		{name: "watch", op: fault.OpExists, path: dir + "/"},
		{name: "delete", op: fault.OpDelete, path: dir + "/"},
	}
}

// ofCounter returns the requests of a counter.
func ofCounter(path string) []request {
	return []request{
		{name: "create", op: fault.OpCreate, path: exactly(path)},
		{name: "read", op: fault.OpGetData, path: exactly(path)},
		{name: "update", op: fault.OpMulti, path: exactly(path)},
		{name: "create marker", op: fault.OpCreate, path: path + "/"},
		{name: "delete marker", op: fault.OpDelete, path: path + "/"},
	}
}

// clients stands for the requests that clients send whatever recipes they use.
var clients = &recipe{name: "client", requests: []request{
	{name: "connect", op: fault.OpConnect, reconnect: true},
	{name: "heartbeat", op: fault.OpSync},
	{name: "auth", op: fault.OpAuth, reconnect: true},
	{name: "setWatches", op: fault.OpSetWatches, reconnect: true},
	{name: "setWatches2", op: fault.OpSetWatches2, reconnect: true},
	{name: "multi", op: fault.OpMulti},
	{name: "closeSession", op: fault.OpCloseSession, rare: true}, // most clients close after all faults
	{name: "any", op: fault.AnyOp},
}}

// cell is a fault of a kind of request of a recipe. Faults of other things have no request.
type cell struct{ Recipe, Request, Fault string }

// hits has the number of faults.
type hits map[cell]int

func (h hits) add(other hits) {
	for c, n := range other {
		h[c] += n
	}
}

// table returns a table in Markdown with a row for each kind of request, with the hits of each kind of fault,
// and one with a row for each kind of other fault.
func (h hits) table() string {
	var b strings.Builder
	row := func(recipe, request string, cells ...any) {
		fmt.Fprintf(&b, "| %-15s | %-19s |", recipe, request)
		for _, c := range cells {
			fmt.Fprintf(&b, " %11v |", c)
		}
		b.WriteString("\n")
	}
	var heads, lines []any
	for _, f := range requestHarms {
		heads, lines = append(heads, f), append(lines, "---:")
	}
	row("recipe", "request", heads...)
	row("---", "---", lines...)
	for _, r := range append([]*recipe{clients}, allRecipes...) {
		for _, q := range r.requests {
			var cells []any
			for _, f := range requestHarms {
				cells = append(cells, h[cell{r.name, q.name, f}])
			}
			row(r.name, q.name, cells...)
		}
	}
	others := map[string]int{}
	for c, n := range h {
		if c.Request == "" {
			others[c.Fault] += n
		}
	}
	b.WriteString("\nOther faults, each counted for each recipe that took part:\n\n")
	fmt.Fprintf(&b, "| %-14s | %11s |\n| %-14s | %11s |\n", "fault", "number", "---", "---:")
	for _, f := range slices.SortedFunc(maps.Keys(others), cmp.Compare[string]) {
		fmt.Fprintf(&b, "| %-14s | %11d |\n", f, others[f])
	}
	return b.String()
}

// missing returns the cells that no fault has met.
func (h hits) missing() (all []string) {
	for _, r := range append([]*recipe{clients}, allRecipes...) {
		for _, q := range r.requests {
			for _, f := range requestHarms {
				if !q.rare && h[cell{r.name, q.name, f}] == 0 {
					all = append(all, fmt.Sprintf("%s: no %s is ever %s", r.name, q.name, f))
				}
			}
		}
		for _, k := range harmKinds {
			if r != clients && h[cell{r.name, "", k.name}] == 0 {
				all = append(all, fmt.Sprintf("%s: never beside the fault %q", r.name, k.name))
			}
		}
	}
	return all
}
