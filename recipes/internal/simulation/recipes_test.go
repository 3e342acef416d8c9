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
		name: "mutex", requests: append(ofQueue(plainPath), request{"revoke", fault.OpSetData, plainPath + "/", false}), queues: []string{plainPath}, lock: func(l *locks) lock { return l.plain },
		actions: []action{
			{"mutex", func(w *worker, l *locks) error { return w.mutex(l.plain, plainPath) }},
			{"revoke", func(w *worker, l *locks) error { return w.revoke(l, l.plain) }},
		},
	},
	{
		name: "hand-off", requests: append(ofQueue(handoffPath), request{"revoke", fault.OpSetData, handoffPath + "/", false}), queues: []string{handoffPath}, lock: func(l *locks) lock { return l.handoff },
		actions: []action{
			{"hand-off", func(w *worker, l *locks) error { return w.mutex(l.handoff, handoffPath) }},
			{"hand-off", func(w *worker, l *locks) error { return w.mutex(l.handoff, handoffPath) }},
			{"revoke hand-off", func(w *worker, l *locks) error { return w.revoke(l, l.handoff) }},
		},
	},
	{
		name: "multi-lock", requests: ofQueue(thirdPath), queues: multiPaths,
		actions: []action{{"multi-lock", (*worker).multi}, {"multi-lock", (*worker).multi}},
	},
	{
		name: "combined locks", requests: ofQueue(nestedPath), queues: []string{nestedPath, fixedPath + "/locks", fixedPath + "/leases"},
		actions: []action{{"combined locks", (*worker).nested}},
	},
	{
		name: "read-write lock", requests: ofQueue(rwPath), queues: []string{rwPath}, lock: func(l *locks) lock { return l.rw.Write() },
		actions: []action{{"read-write lock", (*worker).readWrite}, {"read-write lock", (*worker).readWrite}},
	},
	{
		name: "semaphore", requests: slices.Concat(ofPermits(sharedPath), ofLimit), queues: []string{sharedPath + "/locks", sharedPath + "/leases"},
		lock: func(l *locks) lock { return several{l.shared, 2} },
		actions: []action{
			{"semaphore", func(w *worker, l *locks) error { return w.permits(l.shared, sharedPath) }},
			{"semaphore", func(w *worker, l *locks) error { return w.permits(l.shared, sharedPath) }},
			{"limit", (*worker).changeLimit},
		},
	},
	{
		name: "slots", requests: slices.Concat(ofPermits(slotsPath), ofLimit), queues: []string{slotsPath + "/locks", slotsPath + "/leases"},
		lock: func(l *locks) lock { return several{l.slots, 2} },
		actions: []action{
			{"slots", func(w *worker, l *locks) error { return w.permits(l.slots, slotsPath) }},
			{"limit", (*worker).changeLimit},
		},
	},
	{
		name: "fixed semaphore", requests: append(ofPermits(fixedPath), request{"check limit", fault.OpMulti, exactly(fixedPath), false}), queues: []string{fixedPath + "/locks", fixedPath + "/leases"},
		lock: func(l *locks) lock { return several{l.fixed, 3} },
		actions: []action{
			{"fixed semaphore", func(w *worker, l *locks) error { return w.permits(l.fixed, fixedPath) }},
		},
	},
	{name: "election", requests: ofQueue(electionPath), queues: []string{electionPath}},
	{name: "latch", requests: ofQueue(latchPath), queues: []string{latchPath}},
	{
		name: "stripes", requests: []request{
			{"create", fault.OpCreate, stripesPath + "/3/", false},
			{"list", fault.OpGetChildren2, stripesPath + "/3/", false},
			{"delete", fault.OpDelete, stripesPath + "/3/", false},
			{"transaction", fault.OpMulti, stripesPath + "/3/", false},
			{"register", fault.OpCreate, stripesPath + "/programs/", false},
			{"list programs", fault.OpGetChildren2, stripesPath + "/programs", false},
		}, queues: []string{stripesPath + "/3/0", stripesPath + "/3/1", stripesPath + "/3/2"},
		actions: []action{{"stripes", (*worker).someKeys}},
	},
	{
		name: "condition", requests: append(ofQueue(shopPath),
			request{"create directory", fault.OpCreateContainer, waitsPath, false},
			request{"list waiters", fault.OpGetChildren2, waitsPath, false},
			request{"take signal", fault.OpMulti, waitsPath + "/", false},
			request{"delete waiter", fault.OpDelete, waitsPath + "/", false},
		), queues: []string{shopPath}, lock: func(l *locks) lock { return l.shop },
		actions: []action{
			{"take", (*worker).take}, {"take and wait", (*worker).takeLater}, {"put", (*worker).put},
		},
	},
	{name: "counter", requests: []request{
		{"create", fault.OpCreate, exactly(counterPath), false},
		{"read", fault.OpGetData, exactly(counterPath), false},
		{"update", fault.OpMulti, exactly(counterPath), false},
		{"create marker", fault.OpCreate, counterPath + "/", false},
		{"delete marker", fault.OpDelete, counterPath + "/", false},
	}, actions: []action{{"counter", (*worker).count}}},
	{name: "cache", requests: []request{
		{"watch", fault.OpAddWatch, treePath, false},
		{"look", fault.OpExists, treePath, false},
		{"read", fault.OpGetData, treePath, false},
		{"list", fault.OpGetChildren2, treePath, false},
		{"set", fault.OpSetData, treePath, false},
		{"create", fault.OpCreate, treePath, false},
		{"create with parents", fault.OpMulti, exactly(treePath), false},
		{"delete", fault.OpDelete, treePath, false},
	}, actions: []action{{"tree", (*worker).changeTree}, {"tree", (*worker).changeTree}}},
	{name: "kept node", requests: ofNodes(keptPath), actions: []action{{"kept node", (*worker).keep}}},
	{name: "group", requests: ofNodes(groupPath), actions: []action{{"group", (*worker).join}}},
	{
		name: "gate", requests: []request{
			{"close", fault.OpCreate, gatePath, false},
			{"create with parents", fault.OpMulti, exactly("/gate"), false},
			{"sync", fault.OpMulti, exactly(gatePath), false},
			{"watch", fault.OpExists, gatePath, false},
			{"open", fault.OpDelete, gatePath, false},
		},
		actions: []action{
			{"set the gate", (*worker).setGate}, {"open the gate", (*worker).openGate}, {"gate", (*worker).passGate},
		},
	},
	{
		name: "count-down", requests: []request{
			{"create", fault.OpCreate, exactly(countDownPath), false},
			{"read", fault.OpGetData, exactly(countDownPath), false},
			{"list", fault.OpGetChildren2, countDownPath, false},
			{"count", fault.OpCreate, countDownPath + "/", false},
			{"watch", fault.OpExists, countDownPath + "/", false},
		}, actions: []action{{"count down", (*worker).countDown}, {"wait for counts", (*worker).awaitCounts}},
	},
	{name: "double barrier", requests: []request{
		{"enter", fault.OpMulti, exactly(doublePath), false},
		{"list", fault.OpGetChildren2, doublePath, false},
		{"watch ready", fault.OpExists, doublePath + "/ready", false},
		{"read", fault.OpGetData, doublePath + "/", false},
		{"create", fault.OpCreate, doublePath + "/", false},
		{"leave", fault.OpDelete, doublePath + "/", false},
	}},
	{name: "cyclic barrier", requests: []request{
		{"create", fault.OpCreate, exactly(cyclicPath), false},
		{"read", fault.OpGetData, exactly(cyclicPath), false},
		{"list", fault.OpGetChildren2, cyclicPath, false},
		{"come", fault.OpCreate, cyclicPath + "/", false},
		{"watch", fault.OpGetData, cyclicPath + "/", false},
		{"pass", fault.OpMulti, cyclicPath + "/", false},
		{"give up", fault.OpDelete, cyclicPath + "/", false},
	}, actions: []action{{"cyclic barrier", (*worker).awaitParties}}},
}
