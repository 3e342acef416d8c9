// Package interop has no code but its tests: docent, Curator and kazoo on the same locks of a real server. Each is a process of its own, a
// peer, that does what it is told to; the three have the same words for it.
//
// # Peers
//
// A peer has three arguments: the address of the server, the session timeout in milliseconds, and the address of the resource (see
// below). It prints "ready", and then reads lines:
//
//	<actor> make <lock> <kind> <path> [...]   an object for a lock
//	<actor> acquire <lock> <ms>               "held" or "busy"; 0 tries, and a negative number waits without end
//	<actor> release <lock>
//	<actor> participants <lock>               nodes, or of kazoo identifiers, in their order
//	<actor> revocable <lock>                  for the next acquire: "! revoked <lock>" is printed when it is asked for
//	<actor> revoke <node>
//	<actor> limit <node> <n>                  a SharedCount
//	<actor> work <lock> <resource> <role>     acquires, uses the resource and releases, until the resource says enough
//
// An actor is a thread with a client of its own. Its answers come in the order of its requests, each a line that begins with its name; an
// answer that begins with "failed" is an error.
//
// # The resource
//
// It is a server of the test's, and sees for itself who is in it with whom. A connection to it is one who uses it, in one of the roles
// "alone", "shared" and "one-of-<n>".
package interop
