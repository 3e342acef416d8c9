/*
 * A semaphore: see docs/model.md. An acquire first creates a permit directly, in a transaction that also
 * shows whether the queue was empty and whether the permits were too many. If that fails it deletes the
 * permit, and enters the queue. At the front it lists the permits with a watch, and exchanges its node
 * for one.
 */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#include "sets.pml"

#define DIRECT 100 /* special requests: create a permit directly, */
#define COUNT 101  /* list the permits with a watch; otherwise exchange this node */

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
#define ones8(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1) + \
	((set) >> 4 & 1) + ((set) >> 5 & 1) + ((set) >> 6 & 1) + ((set) >> 7 & 1))
#ifdef MANYNODES
#define ones(set) (ones8(set) + ones8((set) >> 8))
#else
#define ones(set) ones8(set)
#endif
#define SPECIAL(c, n) \
	if \
	:: n == COUNT -> \
		counts[c] = seen[at[c]] & permits; \
		countedAt[c] = version[at[c]]; \
		watched[c] = true; \
		replies[c]!counted(0) \
	:: n == DIRECT -> \
		add_permit(c); \
		after = seen[0] | bit(low); \
		if \
		:: ones(after & permits) <= LIMIT && (after & ~permits) == 0 -> commit(c, taken, low) \
		:: else -> commit(c, toomany, low) \
		fi \
	:: else -> \
		if \
		:: !(seen[0] & bit(n)) -> after = seen[0]; commit(c, missing, n) \
		:: (seen[0] & bit(n)) && PROVED(c, 0) -> \
			add_permit(c); \
			after = seen[0] & ~bit(n) | bit(low); \
			commit(c, taken, low) \
		:: else -> after = seen[0]; commit(c, refused, n) \
		fi \
	fi
/* Since the list nothing was added but created permits. */
#ifdef NO_CHECK
#define PROVED(c, created) true
#else
#define PROVED(c, created) (expects[c] == NONE || expects[c] + created == version[at[c] * (created)])
#endif
#define mine(c) (current[c] & seen[0] & ~permits)
#define OPERATOR_MAY(c) (mine(c) == (current[c] & seen[0]) && \
	(((mine(c) & -mine(c)) - 1) & seen[0] & ~permits))

/* The watch on the permits: a server fires it when one of them is created or deleted. */
#define WATCHED(c, before, now) \
	if \
	:: watched[c] && (((before) ^ (now)) & permits) -> replies[c]!changed(0); watched[c] = false \
	:: else \
	fi
#define WATCHAGAIN(c) \
	if \
	:: armedPermits[c] && \
		(countedAt[c] != version[at[c]] || counts[c] != (seen[at[c]] & permits)) -> replies[c]!changed(0) \
	:: armedPermits[c] && \
		countedAt[c] == version[at[c]] && counts[c] == (seen[at[c]] & permits) -> watched[c] = true \
	:: else \
	fi
#define UNWATCH(c) watched[c] = false

/* In walks no connection breaks while the permits are listed: the code watches them again at once. */
#ifdef WALK
#define BREAKING(c) !lists[c]
#define listing_permits(b) lists[c] = b
#else
#define listing_permits(b) skip
#endif
Set permits;             /* the nodes that are permits */
byte expects[CLIENTS];   /* the version that an exchange checks; NONE: none */
Set counts[CLIENTS];     /* the permits that the client has listed */
byte countedAt[CLIENTS]; /* their directory's version */
bool watched[CLIENTS];   /* the permits are watched on the connection */
bool armedPermits[CLIENTS]; /* the client knows them to be watched */
#ifdef WALK
bool lists[CLIENTS];     /* a list of the permits is not answered */
#endif

#include "servers.pml"

#define OWN bit(own)
#define FINDAHEAD hit = v & ~permits & (bit(own) - 1)
#define GRANTS single
#define RELIST 0
#define GRANTED(c) hit = ones(holders); assert(hit < LIMIT)
#define WHILEHOLDING
#define PERMITS permits
#define BEGIN direct
#define LOCALS \
	bool proves;   /* lists of the permits follow a sync */ \
	bool mustList; /* the permits must be listed */ \
	bool fired;    /* the watch on the permits has fired since they were listed */ \
	bool waited;   /* at the front */
#define NOTE \
	:: m == changed -> fired = fired || armedPermits[c]; DISARM(c)
#define ALSOARMED(c) armedPermits[c]
#define DISARM(c) armedPermits[c] = false; counts[c] = 0; countedAt[c] = 0
#define LEFTFRONT \
	queued = (first -> waited : queued); \
	first = false; \
	waited = false; \
	proves = false; \
	mustList = false; \
	fired = false; \
	expects[c] = 0; \
	working(false); \
	listing_permits(false)
#define RESEND resendSpecial
#define FOUND \
	working(false); \
	if \
	:: first && PROVED(c, 1) -> own = low; LEFTFRONT \
	:: first && !PROVED(c, 1) -> garbage = garbage | bit(low); proves = true; mustList = true \
	:: !first -> garbage = garbage | bit(low); queued = true \
	fi
#define GATE "permits.pml"

#include "client.pml"
