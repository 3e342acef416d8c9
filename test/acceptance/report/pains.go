package main

// pain is a problem of users of coordination services.
type pain struct {
	title   string
	instead string // tests elsewhere, if this package has none; "no tests yet" if empty
}

// pains are numbered from 1, the worst first.
var pains = []pain{
	{title: "The lock is lost and its holder does not know"},
	{title: "No token and no guard: a lock alone does not stop a late write"},
	{title: "A lock node of an earlier session is taken for one's own"},
	{title: "A node without an owner blocks all waiters"},
	{title: "A retry does in a new session what belonged to the old one"},
	{title: "State changes are reported never, late, twice or in the wrong order"},
	{title: "Calls hang, and deadlines are not kept"},
	{title: "The context of the acquire ends the hold, or its release leaves a node"},
	{title: "The client is stuck until it is restarted"},
	{title: "Reconnects go to addresses that no longer exist"},
	{title: "Watches are lost on reconnect, or never given back"},
	{title: "Leader election: no leader, two, or a candidate that silently dropped out"},
	{title: "A short interruption throws away healthy locks"},
	{title: "Semaphore: permits without a holder, limits that cannot change"},
	{title: "Read-write lock: downgrades, upgrades, starved writers"},
	{title: "Multi-lock: deadlocks, and sets that are half taken"},
	{title: "Releasing twice, releasing another client's lock, or not being able to release"},
	{title: "The end of the sequence counter lets two clients hold one lock",
		instead: "see TestContract of recipes/mutex"},
	{title: "Programs in different languages do not exclude each other",
		instead: "see test/interop, with Java and Python"},
	{title: "Many waiters in one process are expensive, many clients reconnect at once"},
	{title: "Empty parents pile up"},
	{title: "Credentials and TLS"},
	{title: "Errors without information, and one large write that ends the connection"},
	{title: "Close leaves something behind, or does not return"},
	{title: "No insight in production, no means to test"},
	{title: "Setting it up is harder than it should be"},
}
