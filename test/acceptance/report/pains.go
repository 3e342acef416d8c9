package main

// pain is something that users of coordination services suffer from.
type pain struct {
	title   string
	instead string // what there is instead while there are no tests; "no tests yet" if empty
}

// pains are numbered from 1, the worst first.
var pains = []pain{
	{title: "The lock is gone and its holder does not know"},
	{title: "No token and no guard: a lock alone does not stop a late write"},
	{title: "A lock node of an earlier session is taken for one's own"},
	{title: "A node that nobody owns blocks everybody"},
	{title: "A retry does in a new session what belonged to the old one"},
	{title: "States are told never, late, twice or in the wrong order"},
	{title: "Calls hang, and deadlines are not kept"},
	{title: "The context of the acquire ends the hold, or its release leaves a node"},
	{title: "The client is stuck until somebody restarts it"},
	{title: "Reconnects go to addresses that are no longer there"},
	{title: "Watches are lost on reconnect, or never given back"},
	{title: "Leader election: no leader, two, or a candidate that silently dropped out"},
	{title: "A short interruption throws away healthy locks"},
	{title: "Semaphore: permits that nobody holds, limits that cannot change"},
	{title: "Read-write lock: downgrades, upgrades, starved writers"},
	{title: "Multi-lock: deadlocks, and sets that are half taken"},
	{title: "Releasing twice, releasing what is somebody else's, or not being able to release"},
	{title: "The end of the sequence counter lets two in",
		instead: "covered by TestContract/end_of_the_counter of recipes/mutex"},
	{title: "Programs in different languages do not exclude each other",
		instead: "covered by test/interop, with processes of Java and Python"},
	{title: "Many waiters in one process are expensive, many clients come as a herd"},
	{title: "Empty parents pile up"},
	{title: "Credentials and TLS"},
	{title: "Errors that tell nothing, and one large write that ends the connection"},
	{title: "Close leaves something behind, or does not return"},
	{title: "Nothing to see in production, nothing to test with"},
	{title: "Setting it up is harder than it should be"},
}
