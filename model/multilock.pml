/*
 * A multi-lock of locks A and B: see docs/model.md. Clients 0 and 1 want both locks, and create a node in
 * both queues in one transaction. Client 2 wants B only. So any two clients exclude each other.
 */

#define both(c) (c < 2)
#define create_nodes(c) \
	current[c] = current[c] | bit(next) | (both(c) -> bit(next + 1) : 0); \
	queueB = queueB | (both(c) -> bit(next + 1) : bit(next)); \
	after = seen[0] | bit(next) | (both(c) -> bit(next + 1) : 0)
#define CREATE(c) \
	create_nodes(c); \
	attempt[c] = attempt[c] | bit(next); \
	low = next; \
	next = next + (both(c) -> 2 : 1); \
	commit(c, created, low)
#define CREATELATE(c) \
	create_nodes(c); \
	attempt[c] = attempt[c] | (late[c] <= 2 -> bit(next) : 0); \
	next = next + (both(c) -> 2 : 1); \
	commitQuietly()
#define SPECIAL(c, n) skip
#define OPERATOR_MAY(c) false

byte queueB; /* the nodes in the queue of B; the others are in that of A */

#include "servers.pml"

byte token = NONE;

#define OWN (bit(own) | (both(c) -> bit(own + 1) : 0))
#define FINDAHEAD \
	hit = v & ~queueB & (bit(own) - 1) & (both(c) -> 255 : 0); \
	hit = (hit -> hit : v & queueB & (bit(own) - 1))
#define GRANTS false /* all queues are listed again */
#define RELIST 0
#define GRANTED(c) \
	assert(holders == 0); \
	assert(token == NONE || own > token); \
	token = own
#define WHILEHOLDING

#include "client.pml"
