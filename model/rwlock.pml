/*
 * A read-write lock: see docs/model.md. Clients below WRITERS write, the others read. Client 0 may become
 * a reader while it holds: a reader node with the place of its writer node is created, in a transaction
 * that checks that the writer node exists. Then the writer node is deleted.
 */

#ifndef WRITERS
#define WRITERS 2
#endif
#define create_with(c, where, kind) \
	place[next] = where; \
	writes = writes | (kind -> bit(next) : 0); \
	current[c] = current[c] | bit(next); \
	after = seen[0] | bit(next); \
	low = next; \
	next++
#define CREATE(c) \
	attempt[c] = attempt[c] | bit(next); \
	create_with(c, next, c < WRITERS); \
	commit(c, created, low)
#define CREATELATE(c) \
	attempt[c] = attempt[c] | (late[c] <= 2 -> bit(next) : 0); \
	create_with(c, next, c < WRITERS); \
	commitQuietly()
#define SPECIAL(c, n) \
	if \
	:: seen[0] & bit(n) -> create_with(c, place[n], false); commit(c, taken, low) \
	:: else -> after = seen[0]; commit(c, refused, n) \
	fi
#define mine(c) (current[c] & seen[0])
#define OPERATOR_MAY(c) (((mine(c) & -mine(c)) - 1) & seen[0])

byte place[8]; /* of each node, in the queue */
byte writes;   /* the writer nodes */

#include "servers.pml"

byte token = NONE; /* of the last writer */
byte writing;      /* the holders that write */

#define OWN bit(own)
#define FINDAHEAD \
	hit = 0; \
	j = 0; \
	do \
	:: j < MAXNODES -> \
		hit = hit | (((v & bit(j)) && place[j] < place[own] && \
			(c < WRITERS || (writes & bit(j)))) -> bit(j) : 0); \
		j++ \
	:: else -> break \
	od; \
	low = v & ~writes & (bit(own) - 1)
#ifdef NO_LIST_AFTER_WRITER
#define GRANTS (single && (c < WRITERS || !low))
#else
#define GRANTS (single && c >= WRITERS && !low) /* low: readers ahead, which may upgrade */
#endif
#define RELIST (c < WRITERS)
#define GRANTED(c) \
	if \
	:: c < WRITERS -> \
		assert(holders == 0); \
		assert(token == NONE || own > token); \
		token = own; \
		writing = bit(c) \
	:: else -> assert((holders & writing) == 0) \
	fi
#define STEPS "downgrade.pml"
#define WHILEHOLDING \
	:: up[c] && c == 0 && writing == 1 && place[own] == own -> requests[c]!special(own); goto downgrading

#include "client.pml"
