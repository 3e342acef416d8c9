package simulation_test

import (
	"slices"

	"github.com/docent-zk/docent/zktest/fault"
)

// recipe is what may take part in a run.
type recipe struct {
	name     string
	queues   []string          // its directories with lock nodes
	lock     func(*locks) lock // what can be acquired in the end; nil if it is no lock
	actions  []action          // of workers; a recipe without actions goes on by itself
	requests []request         // that it sends, for faults
}

var allRecipes = []*recipe{
	{
		name: "mutex",
		requests: append(ofHandedOn(plainPath),
			request{name: "revoke", op: fault.OpSetData, path: plainPath + "/"}),
		queues: []string{plainPath},
		lock:   func(l *locks) lock { return l.plain },
		actions: []action{
			{"mutex", func(w *worker, l *locks) error { return w.mutex(l.plain, plainPath) }},
			{"revoke", func(w *worker, l *locks) error { return w.revoke(l, l.plain) }},
		},
	},
	{
		name: "hand-off",
		requests: append(ofHandedOn(handoffPath),
			request{name: "revoke", op: fault.OpSetData, path: handoffPath + "/"}),
		queues: []string{handoffPath},
		lock:   func(l *locks) lock { return l.handoff },
		actions: []action{
			{"hand-off", func(w *worker, l *locks) error { return w.mutex(l.handoff, handoffPath) }},
			{"hand-off", func(w *worker, l *locks) error { return w.mutex(l.handoff, handoffPath) }},
			{"revoke hand-off", func(w *worker, l *locks) error { return w.revoke(l, l.handoff) }},
		},
	},
	{
		name:     "multi-lock",
		requests: ofHandedOn(thirdPath),
		queues:   multiPaths,
		actions:  []action{{"multi-lock", (*worker).multi}, {"multi-lock", (*worker).multi}},
	},
	{
		name:     "combined locks",
		requests: ofQueue(nestedPath),
		queues:   []string{nestedPath, fixedPath + "/locks", fixedPath + "/leases"},
		actions:  []action{{"combined locks", (*worker).nested}},
	},
	{
		name:     "read-write lock",
		requests: ofHandedOn(rwPath),
		queues:   []string{rwPath},
		lock:     func(l *locks) lock { return l.rw.Write() },
		actions:  []action{{"read-write lock", (*worker).readWrite}, {"read-write lock", (*worker).readWrite}},
	},
	{
		name:     "semaphore",
		requests: slices.Concat(ofPermits(sharedPath), ofLimit),
		queues:   []string{sharedPath + "/locks", sharedPath + "/leases"},
		lock:     func(l *locks) lock { return several{l.shared, 2} },
		actions: []action{
			{"semaphore", func(w *worker, l *locks) error { return w.permits(l.shared, sharedPath) }},
			{"semaphore", func(w *worker, l *locks) error { return w.permits(l.shared, sharedPath) }},
			{"limit", (*worker).changeLimit},
		},
	},
	{
		name:     "slots",
		requests: slices.Concat(ofPermits(slotsPath), ofLimit),
		queues:   []string{slotsPath + "/locks", slotsPath + "/leases"},
		lock:     func(l *locks) lock { return several{l.slots, 2} },
		actions: []action{
			{"slots", func(w *worker, l *locks) error { return w.permits(l.slots, slotsPath) }},
			{"limit", (*worker).changeLimit},
		},
	},
	{
		name: "fixed semaphore",
		requests: append(ofPermits(fixedPath),
			request{name: "check limit", op: fault.OpMulti, path: exactly(fixedPath)}),
		queues: []string{fixedPath + "/locks", fixedPath + "/leases"},
		lock:   func(l *locks) lock { return several{l.fixed, 3} },
		actions: []action{
			{"fixed semaphore", func(w *worker, l *locks) error { return w.permits(l.fixed, fixedPath) }},
		},
	},
	{
		name: "semaphore mutex",
		requests: append(ofPermits(singlePath),
			request{name: "check limit", op: fault.OpMulti, path: exactly(singlePath)}),
		queues:  []string{singlePath + "/locks", singlePath + "/leases"},
		lock:    func(l *locks) lock { return l.single },
		actions: []action{{"semaphore mutex", (*worker).hold}},
	},
	{
		name:     "election",
		requests: ofHandedOn(electionPath),
		queues:   []string{electionPath}},
	{name: "latch",
		requests: ofQueue(latchPath),
		queues:   []string{latchPath}},
	{
		name: "stripes",
		requests: []request{
			{name: "create", op: fault.OpCreate, path: stripesPath + "/3/"},
			{name: "list", op: fault.OpGetChildren2, path: stripesPath + "/3/"},
			{name: "delete", op: fault.OpDelete, path: stripesPath + "/3/"},
			{name: "transaction", op: fault.OpMulti, path: stripesPath + "/3/"},
			{name: "register", op: fault.OpCreate, path: stripesPath + "/programs/"},
			{name: "list programs", op: fault.OpGetChildren2, path: stripesPath + "/programs"},
		},
		queues:  []string{stripesPath + "/3/0", stripesPath + "/3/1", stripesPath + "/3/2"},
		actions: []action{{"stripes", (*worker).someKeys}},
	},
	{
		name: "condition",
		requests: append(ofHandedOn(shopPath),
			request{name: "create directory", op: fault.OpCreateContainer, path: waitsPath},
			request{name: "list waiters", op: fault.OpGetChildren2, path: waitsPath},
			request{name: "take signal", op: fault.OpMulti, path: waitsPath + "/"},
			request{name: "delete waiter", op: fault.OpDelete, path: waitsPath + "/"},
		),
		queues: []string{shopPath},
		lock:   func(l *locks) lock { return l.shop },
		actions: []action{
			{"take", (*worker).take}, {"take and wait", (*worker).takeLater}, {"put", (*worker).put},
		},
	},
	{name: "counter",
		requests: ofCounter(counterPath),
		actions:  []action{{"counter", (*worker).count}}},
	{name: "shared value",
		requests: ofCounter(valuePath),
		actions:  []action{{"count", (*worker).useCount}, {"value", (*worker).useValue}}},
	{name: "sequence",
		requests: ofCounter(sequencePath),
		actions:  []action{{"sequence", (*worker).next}}},
	{
		name:     "fenced resource",
		requests: ofQueue(fencedPath),
		queues:   []string{fencedPath},
		lock:     func(l *locks) lock { return l.fenced },
		actions:  []action{{"fenced resource", (*worker).useResource}},
	},
	{name: "cache",
		requests: []request{
			{name: "watch", op: fault.OpAddWatch, path: treePath},
			{name: "look", op: fault.OpExists, path: treePath},
			{name: "read", op: fault.OpGetData, path: treePath},
			{name: "list", op: fault.OpGetChildren2, path: treePath},
			{name: "set", op: fault.OpSetData, path: treePath},
			{name: "create", op: fault.OpCreate, path: treePath},
			{name: "create with parents", op: fault.OpMulti, path: exactly(treePath)},
			{name: "delete", op: fault.OpDelete, path: treePath},
		},
		actions: []action{{"tree", (*worker).changeTree}, {"tree", (*worker).changeTree}}},
	{name: "kept node",
		requests: ofNodes(keptPath),
		actions:  []action{{"kept node", (*worker).keep}}},
	{name: "group",
		requests: append(ofNodes(groupPath),
			request{name: "list", op: fault.OpGetChildren2, path: groupPath},
			request{name: "read", op: fault.OpGetData, path: groupPath + "/"},
			request{name: "look", op: fault.OpExists, path: exactly(groupPath)},
		),
		actions: []action{{"group", (*worker).join}}},
	{
		name: "discovery",
		requests: []request{
			{name: "create", op: fault.OpCreate, path: ordersPath + "/"},
			{name: "create with parents", op: fault.OpMulti, path: servicesPath},
			{name: "set", op: fault.OpSetData, path: ordersPath + "/"},
			{name: "watch node", op: fault.OpExists, path: ordersPath + "/"},
			{name: "delete", op: fault.OpDelete, path: ordersPath + "/"},
			{name: "watch", op: fault.OpAddWatch, path: ordersPath},
			{name: "list", op: fault.OpGetChildren2, path: ordersPath},
			{name: "read", op: fault.OpGetData, path: ordersPath},
		},
		actions: []action{
			{"register", (*worker).register}, {"pick", (*worker).pick}, {"read instances", (*worker).readInstances},
		},
	},
	{
		name: "gate",
		requests: []request{
			{name: "close", op: fault.OpCreate, path: gatePath},
			{name: "create with parents", op: fault.OpMulti, path: exactly("/gate")},
			{name: "sync", op: fault.OpMulti, path: exactly(gatePath)},
			{name: "watch", op: fault.OpExists, path: gatePath},
			{name: "open", op: fault.OpDelete, path: gatePath},
		},
		actions: []action{
			{"set the gate", (*worker).setGate}, {"open the gate", (*worker).openGate}, {"gate", (*worker).passGate},
		},
	},
	{
		name: "count-down",
		requests: []request{
			{name: "create", op: fault.OpCreate, path: exactly(countDownPath)},
			{name: "read", op: fault.OpGetData, path: exactly(countDownPath)},
			{name: "list", op: fault.OpGetChildren2, path: countDownPath},
			{name: "count", op: fault.OpCreate, path: countDownPath + "/"},
			{name: "watch", op: fault.OpExists, path: countDownPath + "/"},
		},
		actions: []action{{"count down", (*worker).countDown}, {"wait for counts", (*worker).awaitCounts}},
	},
	{name: "double barrier",
		requests: []request{
			{name: "enter", op: fault.OpMulti, path: exactly(doublePath)},
			{name: "list", op: fault.OpGetChildren2, path: doublePath},
			{name: "watch ready", op: fault.OpExists, path: doublePath + "/ready"},
			{name: "read", op: fault.OpGetData, path: doublePath + "/"},
			{name: "leave", op: fault.OpDelete, path: doublePath + "/"},
		}},
	{name: "cyclic barrier",
		requests: []request{
			{name: "create", op: fault.OpCreate, path: exactly(cyclicPath)},
			{name: "read", op: fault.OpGetData, path: exactly(cyclicPath)},
			{name: "list", op: fault.OpGetChildren2, path: cyclicPath},
			{name: "come", op: fault.OpMulti, path: exactly(cyclicPath)},
			{name: "fence", op: fault.OpSetData, path: exactly(cyclicPath)},
			{name: "watch", op: fault.OpGetData, path: cyclicPath + "/"},
			{name: "pass", op: fault.OpMulti, path: cyclicPath + "/"},
			{name: "give up", op: fault.OpDelete, path: cyclicPath + "/"},
		},
		actions: []action{{"cyclic barrier", (*worker).awaitParties}}},
}
