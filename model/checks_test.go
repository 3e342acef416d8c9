//go:build model

package model

// small are the smallest runs of each model, which "make model-quick" checks.
var small = []check{
	{"a broken connection", "mutex", "-DLOSSES=0", nothing},
	{"a lost session", "mutex", "-DDROPS=0", nothing},
	{"a session expires before the deadline", "mutex", "-DNO_DEADLINE", exclusion},
	{"a broken connection", "rwlock", "-DLOSSES=0", nothing},
	{"no list after a writer's deletion", "rwlock",
		"-DCLIENTS=3 -DDROPS=0 -DLOSSES=0 -DNO_LIST_AFTER_WRITER", exclusion},
	{"a broken connection", "semaphore", "-DLOSSES=0", nothing},
	{"a session expires before the deadline", "semaphore", "-DNO_DEADLINE", permits},
	{"a broken connection", "multilock", "-DLOSSES=0", nothing},
	{"a session expires before the deadline", "multilock", "-DNO_DEADLINE", exclusion},
}

var ofMutex = []check{
	// The algorithm as it is. With IMPATIENT, client 1 may give up at any time.
	{"three clients, a broken connection", "mutex", "-DCLIENTS=3 -DIMPATIENT=2 -DDROPS=1 -DLOSSES=0", nothing},
	{"three clients, a lost session", "mutex", "-DCLIENTS=3 -DDROPS=0 -DLOSSES=1", nothing},
	{"two clients, both faults, a waiter's node is deleted", "mutex", "-DIMPATIENT=2 -DDELETIONS=1", nothing},
	{"a follower, both faults", "mutex", "-DFOLLOWER -DIMPATIENT=2", nothing},
	{"a follower, two broken connections", "mutex", "-DFOLLOWER -DIMPATIENT=2 -DDROPS=2 -DLOSSES=0", nothing},
	{"guarded writes rely on no assumption", "mutex",
		"-DGUARD -DNO_DEADLINE -DOPERATOR_DELETES_HOLDERS -DDELETIONS=1", nothing},
	{"all clients can hold", "mutex", "-DCLIENTS=3 -DWITNESS", witness},

	// The assumptions, one switched off in each.
	{"a session expires before the deadline", "mutex", "-DNO_DEADLINE", exclusion},
	{"an operator deletes a holder's node", "mutex", "-DOPERATOR_DELETES_HOLDERS -DDELETIONS=1", exclusion},
	{"a request is passed on later than it is looked for", "mutex",
		"-DFORGETS -DFOLLOWER -DIMPATIENT=2 -DDROPS=2 -DLOSSES=0", noOrphans},
	{"the servers are restored from a backup", "mutex", "-DRESTORE", tokens},

	// The parts of the algorithm, one left out in each.
	{"no sync on a new connection", "mutex", "-DNO_SYNC -DFOLLOWER", progress},
	{"no sync, and a list without the own node is believed", "mutex",
		"-DNO_SYNC -DFOLLOWER -DUNLISTED -DEXCLUSION_ONLY", exclusion},
	{"no second list", "mutex", "-DCLIENTS=3 -DNO_SECOND_LIST -DIMPATIENT=2 -DDROPS=0 -DLOSSES=0", exclusion},
	{"no watch on the own node", "mutex",
		"-DCLIENTS=3 -DIGNORE_OWN -DDELETIONS=1 -DDROPS=0 -DLOSSES=0 -DEXCLUSION_ONLY", exclusion},
	{"watches are not set again on a new connection", "mutex", "-DOLD_WATCHES -DLOSSES=0", progress},
	{"the node of a waiter that gives up is left", "mutex", "-DNO_CLEANUP -DIMPATIENT=2", progress},
}

var ofMultilock = []check{
	{"two clients, a lost session", "multilock", "-DDROPS=0", nothing},
	{"two clients, a broken connection", "multilock", "-DLOSSES=0 -DIMPATIENT=2", nothing},
	{"a follower, a broken connection", "multilock", "-DFOLLOWER -DLOSSES=0", nothing},
	{"three clients", "multilock", "-DCLIENTS=3 -DDROPS=0 -DLOSSES=0 -DIMPATIENT=2", nothing},
	{"all clients can hold", "multilock", "-DCLIENTS=3 -DWITNESS -DLOSSES=0", witness},
	{"a session expires before the deadline", "multilock", "-DNO_DEADLINE", exclusion},
}

var ofRWLock = []check{
	{"two writers and a reader", "rwlock", "-DCLIENTS=3 -DDROPS=0 -DLOSSES=0 -DIMPATIENT=2", nothing},
	{"a writer and a reader, both faults", "rwlock", "-DWRITERS=1", nothing},
	{"two writers, a follower, a broken connection", "rwlock", "-DFOLLOWER -DLOSSES=0", nothing},
	{"two writers and a reader, a waiter's node is deleted", "rwlock",
		"-DCLIENTS=3 -DDROPS=0 -DLOSSES=0 -DDELETIONS=1", nothing},
	{"all clients can hold", "rwlock", "-DCLIENTS=3 -DWITNESS -DLOSSES=0", witness},
	{"a session expires before the deadline", "rwlock", "-DNO_DEADLINE", exclusion},
	{"no list after a writer's deletion", "rwlock",
		"-DCLIENTS=3 -DDROPS=0 -DLOSSES=0 -DNO_LIST_AFTER_WRITER", exclusion},
}

var ofSemaphore = []check{
	{"a lost session", "semaphore", "-DIMPATIENT=2 -DDROPS=0", nothing},
	{"a follower, a broken connection, a waiter's node is deleted", "semaphore",
		"-DFOLLOWER -DLOSSES=0 -DDELETIONS=1", nothing},
	{"three clients, two permits", "semaphore",
		"-DCLIENTS=3 -DLIMIT=2 -DDROPS=0 -DLOSSES=0 -DIMPATIENT=2", nothing},
	{"all clients can hold", "semaphore", "-DCLIENTS=3 -DLIMIT=2 -DWITNESS -DLOSSES=0", witness},
	{"a session expires before the deadline", "semaphore", "-DNO_DEADLINE", permits},
	{"no sync: the check of the version suffices", "semaphore",
		"-DFOLLOWER -DLAG=3 -DNO_SYNC -DMANYNODES -DDROPS=2 -DLOSSES=0 -DEXCLUSION_ONLY", nothing},
	{"no sync and no check of the version", "semaphore",
		"-DFOLLOWER -DLAG=3 -DNO_SYNC -DNO_CHECK -DMANYNODES -DDROPS=2 -DLOSSES=0 -DEXCLUSION_ONLY", permits},
}

var endless = []check{
	{"two clients, both faults", "mutex", "-DIMPATIENT=2", nothing},
	{"a follower, a broken connection", "mutex", "-DFOLLOWER -DIMPATIENT=2 -DLOSSES=0", nothing},
	{"a reader and a writer", "rwlock", "-DWRITERS=1 -DLOSSES=0", nothing},
	{"a broken connection", "semaphore", "-DLOSSES=0", nothing},
	{"a broken connection", "multilock", "-DLOSSES=0", nothing},
}
