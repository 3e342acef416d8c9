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
	:: seen[0] & bit(n) -> \
		attempt[c] = attempt[c] | bit(next); \
		downgraded = downgraded | bit(n); \
		create_with(c, place[n], false); \
		commit(c, taken, low) \
	:: else -> after = seen[0]; commit(c, refused, n) \
	fi
#define mine(c) (current[c] & seen[0])
#define OPERATOR_MAY(c) (!(holders & bit(c)) && \
	(((mine(c) & -mine(c)) - 1) & seen[0] & (c < WRITERS -> 255 : writes))) /* there are conflicting nodes ahead */

/* In walks no writer lists two nodes with one place: in the code their random names order them. */
#ifdef WALK
#define LISTED(c) (c >= WRITERS || !(seen[0] & downgraded))
#define TURNS(c) (c == 0 && writing == 1)
#endif

#include "sets.pml"

byte place[MAXNODES]; /* of each node, in the queue */
Set writes;      /* the writer nodes */
Set downgraded;  /* those whose place a reader node has, too */
byte writing;    /* the holders that write */

#include "servers.pml"

byte token = NONE; /* of the last writer */

#define OWN bit(own)
#define FINDAHEAD \
	hit = 0; \
	after = 0; \
	j = 0; \
	do \
	:: j < MAXNODES -> \
		hit = hit | ((v & bit(j)) && place[j] < place[own] && conflicts(c, j) -> bit(place[j]) : 0); \
		after = after | ((v & bit(j)) && place[j] < place[own] && !(writes & bit(j)) -> bit(place[j]) : 0); \
		j++ \
	:: else -> break \
	od
#define FINDAT \
	low = 0; \
	do \
	:: (v & bit(low)) && place[low] == j && conflicts(c, low) -> break \
	:: else -> low++ \
	od
#define conflicts(c, k) (c < WRITERS || (writes & bit(k)))
/* Readers ahead of the only writer ahead, or at its place: they may upgrade. */
#define readers_first (after & (hit | hit - 1))
#ifdef NO_LIST_AFTER_WRITER
#define GRANTS (single && (c < WRITERS || !readers_first))
#else
#define GRANTS (single && c >= WRITERS && !readers_first)
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
	:: turns(c) && c == 0 && writing == 1 && place[own] == own -> goto downgrade
#define RESEND downgrade
#define FOUND writing = 0; own = low

#include "client.pml"
