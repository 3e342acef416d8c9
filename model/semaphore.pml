/*
 * A semaphore: see docs/model.md. An acquire first creates a permit directly, in a transaction that also
 * shows whether the queue was empty and whether the permits were too many. If that fails it deletes the
 * permit, and enters the queue. At the front it reads the permits, and exchanges its node for one.
 */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#define DIRECT 100 /* special requests: create a permit directly, */
#define COUNT 101  /* read the permits and their directory's version; otherwise exchange this node */

#define CREATE(c) \
	current[c] = current[c] | bit(next); \
	attempt[c] = attempt[c] | bit(next); \
	after = seen[0] | bit(next); \
	low = next; next++; \
	commit(c, created, low)
#define CREATELATE(c) \
	current[c] = current[c] | bit(next); \
	attempt[c] = attempt[c] | (late[c] <= 2 -> bit(next) : 0); \
	after = seen[0] | bit(next); \
	next++; \
	commitQuietly()
#define add_permit(c) \
	permits = permits | bit(next); \
	current[c] = current[c] | bit(next); \
	attempt[c] = attempt[c] | bit(next); \
	low = next; \
	next++; \
	version[0]++
#define ones(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1) + \
	((set) >> 4 & 1) + ((set) >> 5 & 1) + ((set) >> 6 & 1) + ((set) >> 7 & 1))
#define SPECIAL(c, n) \
	if \
	:: n == COUNT -> \
		replies[c]!listed(seen[at[c]]); \
		replies[c]!proof(version[at[c]]); \
		watches[c] = watches[c] | (seen[at[c]] & permits) \
	:: n == DIRECT -> \
		add_permit(c); \
		after = seen[0] | bit(low); \
		if \
		:: ones(after & permits) <= LIMIT && (after & ~permits) == 0 -> commit(c, taken, low) \
		:: else -> commit(c, refused, low) \
		fi \
	:: else -> \
		if \
		:: !(seen[0] & bit(n)) -> after = seen[0]; commit(c, missing, n) \
		:: (seen[0] & bit(n)) && PROVED(c) -> \
			add_permit(c); \
			after = seen[0] & ~bit(n) | bit(low); \
			commit(c, taken, low) \
		:: else -> after = seen[0]; commit(c, refused, n) \
		fi \
	fi
#ifdef NO_CHECK
#define PROVED(c) true
#else
#define PROVED(c) (expects[c] == NONE || expects[c] == version[0])
#endif
#define mine(c) (current[c] & seen[0] & ~permits)
#define OPERATOR_MAY(c) (mine(c) == (current[c] & seen[0]) && \
	(((mine(c) & -mine(c)) - 1) & seen[0] & ~permits))

byte permits;    /* the nodes that are permits */
byte expects[CLIENTS]; /* the version that an exchange checks; NONE: none */

#include "servers.pml"

#define OWN bit(own)
#define FINDAHEAD hit = v & ~permits & (bit(own) - 1)
#define GRANTS single
#define RELIST 0
#define GRANTED(c) hit = ones(holders); assert(hit < LIMIT)
#define WHILEHOLDING
#define PERMITS permits
#define BEGIN direct
#define LOCALS bool proves; bool room_left; bool changed; bool answered;
#define forget_count room_left = false; changed = false; answered = false
#define GATE "permits.pml"

#include "client.pml"
