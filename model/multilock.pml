/*
 * A multi-lock of locks A and B: see docs/model.md. Clients 0 and 1 want both locks, and create a node in
 * both queues in one transaction. They wait in both queues at the same time. Client 2 wants B only. So any
 * two clients exclude each other.
 */

#define wantsBoth(c) (c < 2)
#define create_nodes(c) \
	current[c] = current[c] | bit(next) | (wantsBoth(c) -> bit(next + 1) : 0); \
	queueB = queueB | (wantsBoth(c) -> bit(next + 1) : bit(next)); \
	after = seen[0] | bit(next) | (wantsBoth(c) -> bit(next + 1) : 0)
#define CREATE(c) \
	create_nodes(c); \
	attempt[c] = attempt[c] | bit(next); \
	low = next; \
	next = next + (wantsBoth(c) -> 2 : 1); \
	commit(c, created, low)
#define CREATELATE(c) \
	create_nodes(c); \
	attempt[c] = attempt[c] | (late[c] <= 2 -> bit(next) : 0); \
	next = next + (wantsBoth(c) -> 2 : 1); \
	commitQuietly()
#define SPECIAL(c, n) /* checks that both nodes exist */ \
	after = seen[0]; \
	if \
	:: (seen[0] & bit(n)) && (seen[0] & bit(n + 1)) -> commit(c, taken, n) \
	:: else -> commit(c, missing, n) \
	fi
#define OPERATOR_MAY(c) false
#define QUEUES "queues.pml"

#include "sets.pml"

Set queueB; /* the nodes in the queue of B; the others are in that of A */

#include "servers.pml"

byte token = NONE;

#define OWN (bit(own) | (wantsBoth(c) -> bit(own + 1) : 0))
#define GRANTED(c) \
	assert(holders == 0); \
	assert(token == NONE || own > token); \
	token = own
#define WHILEHOLDING

/* What a client knows of each queue. */
#define LOCALS \
	byte q;            /* the queue that a message is about; A: 0, B: 1 */ \
	bool atFront[2];     /* no node is ahead */ \
	bool lists[2];     /* a list is not answered */ \
	bool asksTarget[2]; \
	bool asksOwn[2]; \
	bool asksAhead[2]; \
	bool both[2]; \
	bool single[2]; \
	Gone gone[2]; \
	bool certain[2]; \
	byte target[2]; \
	byte ahead[2]; \
	bool waited;       /* in one of the queues */ \
	bool one;          /* the list of A has arrived, and that of B not yet */ \
	Set heard;         /* the list of A */

#define ownIn(q) (own + (wantsBoth(c) -> q : 0))
#define ownIsWatched(q) (armed[c] & bit(ownIn(q)))
#define inQueue(q) (q -> queueB : ~queueB)
#define forget_queue(q) \
	target[q] = NONE; \
	ahead[q] = NONE; \
	single[q] = false; \
	gone[q] = false; \
	certain[q] = false; \
	asksTarget[q] = false; \
	asksOwn[q] = false; \
	asksAhead[q] = false; \
	both[q] = false; \
	atFront[q] = q == 0 && !wantsBoth(c); \
	lists[q] = !atFront[q]
#define forget_target \
	forget_queue(0); \
	forget_queue(1); \
	waited = false; \
	one = false; \
	heard = 0; \
	q = 0
#define lost_answers \
	certain[0] = certain[0] && !before_own(gone[0], asksOwn[0]); \
	certain[1] = certain[1] && !before_own(gone[1], asksOwn[1]); \
	asksTarget[0] = asksTarget[0] || asksAhead[0] && !lists[0]; \
	asksTarget[1] = asksTarget[1] || asksAhead[1] && !lists[1]; \
	asksAhead[0] = false; \
	asksAhead[1] = false; \
	both[0] = false; \
	both[1] = false
#define read_later_in(q) (asksTarget[q] -> bit(target[q]) : (asksOwn[q] -> bit(ownIn(q)) : 0))
#define read_later(c) (own == NONE -> 0 : read_later_in(0) | read_later_in(1))
#define lists_behind(c) \
	if \
	:: wantsBoth(c) -> requests[c]!list(0) \
	:: else \
	fi; \
	requests[c]!list(1)
#define removal(c) \
	if \
	:: wantsBoth(c) && (garbage & bit(low + 1)) && !(queueB & bit(low)) -> requests[c]!removeBoth(low) \
	:: else -> requests[c]!remove(low) \
	fi
#define unremoved (bit(v) | (wantsBoth(c) && !(queueB & bit(v)) -> bit(v + 1) : 0))
#define note \
	if \
	:: m == there -> armed[c] = armed[c] | bit(v) \
	:: m == deleted -> armed[c] = armed[c] & ~bit(v); stale[c] = stale[c] & ~bit(v) \
	:: else \
	fi

#include "client.pml"
