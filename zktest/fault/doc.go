// Package fault describes what becomes of single requests in a test. A [Match] selects requests, an
// [Action] says what is done with them, and the method On of a server or a proxy makes a [Rule] of
// the two:
//
//	rule := srv.On(fault.Match{Op: fault.OpMulti, Path: "/locks/"}, fault.DropAfter())
//	... // the client's transaction is carried out, and the connection ends without an answer
//	fmt.Println(rule.Hits())
//
// Servers of package zktest and proxies of package zktest/proxy take the same rules. A proxy knows
// only addresses and frames: it has no named clients, no rules for handshakes, and neither [Fail]
// nor [Truncate].
//
// [Rules] is the list of rules that a server or a proxy keeps. Tests do not need it.
package fault
