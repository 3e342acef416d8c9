/* A mutex: see docs/model.md. */

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
#ifdef GUARD
/* A guarded write, which the servers apply if the lock node exists. */
#define SPECIAL(c, n) \
	if \
	:: seen[0] & bit(n) -> assert(written == NONE || n >= written); written = n \
	:: else \
	fi; \
	after = seen[0]; \
	commit(c, taken, n)
byte written = 255;
#else
#define SPECIAL(c, n) skip
#endif

#ifdef OPERATOR_DELETES_HOLDERS
#define OPERATOR_MAY(c) true
#else
#define mine(c) (current[c] & seen[0])
#define OPERATOR_MAY(c) (((mine(c) & -mine(c)) - 1) & seen[0]) /* there are nodes ahead */
#endif

#include "servers.pml"

byte token = NONE; /* of the last hold */

#define OWN bit(own)
#define FINDAHEAD hit = v & (bit(own) - 1)
#ifdef NO_SECOND_LIST /* the deletion of the predecessor grants the lock, whatever is ahead of it */
#define GRANTS (single || target != NONE)
#define RELIST 1
#else
#define GRANTS single
#define RELIST 0
#endif
#ifdef GUARD
#define GRANTED(c) skip
#define STEPS "guard.pml"
#define WHILEHOLDING \
	:: up[c] && empty(requests[c]) && written != own -> requests[c]!special(own); goto guarding
#else
#define GRANTED(c) \
	assert(holders == 0); \
	assert(token == NONE || own > token); \
	token = own
#define WHILEHOLDING
#endif

#include "client.pml"
