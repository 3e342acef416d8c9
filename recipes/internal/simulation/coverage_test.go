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
}

func (r request) match() fault.Match { return fault.Match{Op: r.op, Path: r.path} }

// exactly returns a pattern that matches one path only. A path alone matches all that begin with it.
func exactly(path string) string { return path[:len(path)-1] + "[" + path[len(path)-1:] + "]" }

// ofQueue returns the requests of waiters and holders whose nodes are in a directory.
func ofQueue(dir string) []request {
	return []request{
		{"create", fault.OpCreate, dir + "/", false},
		{"create with parents", fault.OpMulti, exactly(dir), false},
		{"list", fault.OpGetChildren2, dir, false},
		{"watch predecessor", fault.OpGetData, dir + "/", false},
		{"watch hold", fault.OpExists, dir + "/", false},
		{"delete", fault.OpDelete, dir + "/", false},
		{"transaction", fault.OpMulti, dir + "/", false},
	}
}

// ofPermits returns the requests of a semaphore, beside those of its queue.
func ofPermits(path string) []request {
	return append(ofQueue(path+"/locks"),
		request{"create directory", fault.OpCreateContainer, path, false},
		request{"list permits", fault.OpGetChildren2, path + "/leases", false},
		request{"take permits", fault.OpMulti, path + "/leases/", false},
		request{"delete permits", fault.OpDelete, path + "/leases/", false},
	)
}

// ofLimit are the requests of a semaphore with a limit that is data of a node.
var ofLimit = []request{
	{"read limit", fault.OpGetData, limitPath, false},
	{"check limit", fault.OpMulti, limitPath, false},
	{"set limit", fault.OpSetData, limitPath, false},
}

// ofNodes returns the requests of a recipe that keeps nodes in a directory.
func ofNodes(dir string) []request {
	return []request{
		{"create", fault.OpCreate, dir + "/", false},
		{"create with parents", fault.OpMulti, exactly(dir), false},
		{"set", fault.OpSetData, dir + "/", false},
		{"watch", fault.OpExists, dir + "/", false},
		{"delete", fault.OpDelete, dir + "/", false},
	}
}

// clients stands for the requests that clients send whatever recipes they use.
var clients = &recipe{name: "client", requests: []request{
	{"connect", fault.OpConnect, "", true},
	{"heartbeat", fault.OpSync, "", false},
	{"auth", fault.OpAuth, "", true},
	{"setWatches", fault.OpSetWatches, "", true},
	{"setWatches2", fault.OpSetWatches2, "", true},
	{"multi", fault.OpMulti, "", false},
	{"closeSession", fault.OpCloseSession, "", false},
	{"any", fault.AnyOp, "", false},
}}

// cell is a fault of a kind of request of a recipe. Faults of other things have no request.
type cell struct{ recipe, request, fault string }

// hits has the number of faults.
type hits map[cell]int

func (h hits) add(other hits) {
	for c, n := range other {
		h[c] += n
	}
}

// table returns a line for each kind of request, with the hits of each kind of fault, and a line for
// each kind of other fault.
func (h hits) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-20s", "recipe", "request")
	for _, f := range requestHarms {
		fmt.Fprintf(&b, " %11s", f)
	}
	for _, r := range append([]*recipe{clients}, allRecipes...) {
		for _, q := range r.requests {
			fmt.Fprintf(&b, "\n%-16s %-20s", r.name, q.name)
			for _, f := range requestHarms {
				fmt.Fprintf(&b, " %11d", h[cell{r.name, q.name, f}])
			}
		}
	}
	others := map[string]int{}
	for c, n := range h {
		if c.request == "" {
			others[c.fault] += n
		}
	}
	b.WriteString("\nother faults, each counted for each recipe that took part:")
	for _, f := range slices.SortedFunc(maps.Keys(others), cmp.Compare[string]) {
		fmt.Fprintf(&b, "\n%-37s %11d", f, others[f])
	}
	return b.String()
}

// missing returns the cells that no fault has met.
func (h hits) missing() (all []string) {
	for _, r := range append([]*recipe{clients}, allRecipes...) {
		for _, q := range r.requests {
			for _, f := range requestHarms {
				if h[cell{r.name, q.name, f}] == 0 {
					all = append(all, fmt.Sprintf("%s: no %s is ever %s", r.name, q.name, f))
				}
			}
		}
		for _, k := range harmKinds {
			if r != clients && !slices.Contains(requestHarms, k.name) && h[cell{r.name, "", k.name}] == 0 {
				all = append(all, fmt.Sprintf("%s: never beside the fault %q", r.name, k.name))
			}
		}
	}
	return all
}
