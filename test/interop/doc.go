// Package interop has only tests. They use docent, Curator and kazoo on the same locks, groups,
// barriers, caches and nodes of a real server. Each of the three runs in a process of its own, a peer, which
// reads commands. The commands are the same for all three.
//
// # Peers
//
// A peer has three arguments: the address of the server, the session timeout in milliseconds, and
// the address of the resource (see below). It prints "ready", and then reads lines:
//
//	<actor> make <lock> <kind> <path> [...]   an object for a lock
//	<actor> acquire <lock> <ms>               "held" or "busy"; 0 tries, a negative number has no limit
//	<actor> release <lock>
//	<actor> participants <lock>               nodes, or identifiers with kazoo, in order
//	<actor> revocable <lock>                  for the next acquire: a revocation prints "! revoked <lock>"
//	<actor> revoke <node>
//	<actor> limit <node> <n>                  a SharedCount
//	<actor> work <lock> <resource> <role>     acquires, uses the resource and releases, until it has enough
//	<actor> join <group> <id> <payload>       a member; kazoo has no payload
//	<actor> payload <group> <payload>         of the member
//	<actor> members <group>                   "members", and each as <id>=<payload>; needs a member
//	<actor> leave <group>
//	<actor> cache <path>                      a cache of a subtree; "cached <path>" lists it, "uncache" ends it
//	<actor> keep <node> <data>                a node that is kept; answers before it is there
//	<actor> drop <node>                       when it has been there
//	<actor> leave-shape <kind> <path>         Java and kazoo: leaves the nodes of a recipe that is in use
//	<actor> add <kind> <node> <delta>         "number" and the sum, or "value" and the text with delta appended
//
//	<actor> set-barrier <path>                also remove-barrier
//	<actor> wait-barrier <path> <ms>          "open" or "closed"
//	<actor> enter <path> <n>                  a double barrier: "inside"; "exit <path>" leaves it: "outside"
//
// For docent, "join-party" and "members-party" use the names of kazoo.
//
// The peer in Java also has a registry of the service "orders":
//
//	<actor> services <path> <compatible>      without the field "enabled" if compatible is true
//	<actor> service register <id> <type> <port> <payload> <enabled>; also update and unregister
//	<actor> service names; also find and provided, which list instances, and pick
//
// An actor is a thread with a client of its own. It answers its requests in order. An answer is a
// line that begins with the name of the actor. An answer that begins with "failed" is an error.
//
// # The resource
//
// The resource is a server of the test. It checks by itself which users are in it at the same time.
// Each connection is a user, in one of the roles "alone", "shared" and "one-of-<n>".
package interop
