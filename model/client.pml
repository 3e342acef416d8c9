/*
 * A client that acquires a lock once, and releases it.
 *
 * A model defines
 *   OWN           the set of the own nodes, of which own is the first
 *   FINDAHEAD     sets hit to the places of the conflicting nodes ahead of them in the list v
 *   FINDAT        sets low to the node at place j; may be missing: the place of a node is its number
 *   GRANTS        whether the deletion of the target grants the lock; single: no other one conflicts
 *   RELIST        0, or 1 if the client watches the predecessor, and not the node before it
 *   GRANTED       what is asserted when a hold begins
 *   WHILEHOLDING  what a holder may do, as options of an if
 *   QUEUES        a file with the steps between the create and the front of several queues; may be missing
 *   STEPS         a file with the steps of such options; may be missing
 *   RESEND        the step that sends a transaction of the lock again, because its node was not found on
 *                 the connection after the one on which the answer was lost; may be missing
 *   FOUND         what follows if that node, low, was found
 *   GATE          a file with the steps between the front of the queue and the hold; may be missing
 *   LEFTFRONT     what a client does that is not at the front any more
 *   ALSOARMED     whether the client knows that more than nodes is watched; DISARM forgets that, NOTE is what
 *                 a message says of it
 *   BEGIN         the label of the first step
 */

#ifndef BEGIN
#define BEGIN enqueue
#endif

#ifndef FINDAT
#define FINDAT low = j
#endif

#ifndef RESEND
#define resends false
#endif

#ifndef NOTE
#define NOTE
#endif
#ifndef LEFTFRONT
#define LEFTFRONT first = false
#endif
#ifndef ALSOARMED
#define ALSOARMED(c) false
#define DISARM(c) skip
#endif

#ifndef PERMITS
#define PERMITS 0 /* the nodes that are permits of a semaphore */
#endif

/*
 * The answer that the target is missing, and that to the read of the own node, show that the own node has
 * existed for longer if they came on one connection. In walks the code sends the second read again before it has
 * another connection. So it cannot tell. Otherwise it may send it later, which shows that the own node exists.
 */
#ifdef WALK
#define MISSING 2
#define Gone byte
#define before_own(g, asks) (g == MISSING && asks)
#else
#define MISSING true
#define Gone bool
#define before_own(g, asks) false
#endif

#ifdef QUEUES
#define LISTS(c) lists_behind(c); working(true)
#define CREATING (named && own == NONE) /* the code deletes the nodes of such a create one by one */
#else
#define CREATING false
#define LISTS(c) requests[c]!list(0)
#define removal(c) requests[c]!remove(low)
#define unremoved bit(v)

/* forget_target forgets what the client waits for. */
#define forget_target \
	target = NONE; \
	ahead = NONE; \
	single = false; \
	gone = false; \
	certain = false; \
	asksTarget = false; \
	asksOwn = false; \
	asksAhead = false; \
	both = false

/* lost_answers is what is read again after a reconnect. */
#define lost_answers \
	certain = certain && !before_own(gone, asksOwn); \
	asksTarget = asksTarget || asksAhead && target != NONE; \
	asksAhead = false; \
	both = false
#define read_later(c) (asksTarget && target != NONE -> bit(target) : \
	(asksOwn && !asksTarget && own != NONE -> bit(own) : 0))
#define own_watched (armed[c] & bit(own))
#endif

/* clear forgets a message, which makes fewer states. */
#define clear m = 0; v = 0

/* note records what a message says of watches. A watch from before a reconnect does not tell an order. */
#ifndef QUEUES
#define note \
	if \
	:: m == there -> armed[c] = armed[c] | bit(v) \
	:: m == deleted -> \
		gone = (v == target -> true : gone); \
		certain = (v == target -> !(stale[c] & bit(v)) : certain); \
		armed[c] = armed[c] & ~(FORGETTABLE); \
		stale[c] = stale[c] & ~bit(v) \
	NOTE \
	:: else \
	fi
#ifdef IGNORE_OWN
#define FORGETTABLE (v == own -> 0 : bit(v))
#else
#define FORGETTABLE bit(v)
#endif
#endif

/* broken is the option of a step that waits for a reply. */
#define broken !up[c] -> clear; goto reconnect

#define in_queue (!garbage && !leaving && !held && own != NONE)

#ifdef WITNESS
byte grants;
#endif

proctype Client(byte c)
{
	mtype m;
	Set v;
	byte own = NONE;     /* the own node */
	Set garbage;         /* nodes to delete */
#ifndef QUEUES
	byte target = NONE;  /* the node that is watched */
	byte ahead = NONE;   /* the predecessor */
	bool single;         /* the target is the only conflicting node ahead */
	Gone gone;           /* the target does not exist */
	bool certain;        /* the own node has existed for longer than the target */
	bool asksTarget;     /* a read of the target is not answered */
	bool asksOwn;        /* a read of the own node is not answered */
	bool asksAhead;      /* a read of the predecessor, sent behind a list, is not answered */
	bool both;           /* the reads of the target and the own node were sent together */
#endif
	bool unanswered;     /* a create had no answer */
#ifdef RESEND
	bool resends;        /* a transaction of the lock has no answer */
#endif
	bool leaving;        /* the client has given up or released */
	bool held;
	bool named;          /* a create was sent */
	bool first;          /* the client of a semaphore has been at the front of the queue */
	bool queued;         /* the client must enter the queue */
#ifdef WALK
	bool insync;         /* the sync of the connection is answered */
#endif
#ifdef LOCALS
	LOCALS
#endif

#ifdef WALK
	started;
#endif
	/* A new attempt, with a new GUID. */
begin:	atomic {
		own = NONE;
		forget_target;
		named = false;
		attempt[c] = 0;
		if
		:: late[c] == 1 || late[c] == 2 -> late[c] = late[c] + 2
		:: else
		fi;
#ifdef WALK
		leaving = leaving || wants(c);
#endif
		if
		:: leaving -> goto finish
		:: !leaving && !queued -> goto BEGIN
		:: !leaving && queued -> goto enqueue
		fi
	}

	/* A create, and a list right behind it. */
enqueue:	atomic {
		if
		:: up[c] -> requests[c]!create(0); LISTS(c); named = true
		:: broken
		fi
	}

naming:	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == created -> own = v; attempt[c] = 0; working(false); clear
			:: else -> clear; goto naming
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && !leaving && wants(c) -> leaving = true; goto naming
		fi;
		if
		:: leaving -> goto release
		:: else
		fi
	}

#ifdef QUEUES
#include QUEUES
#else
listing:	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == listed -> skip
			:: else -> note; clear; goto listing
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi;
		d_step {
			m = 0;
			single = false;
			gone = false;
			certain = false;
			target = NONE;
			k = ahead;
			ahead = NONE;
			if
#ifndef UNLISTED
			:: (v & OWN) != OWN -> target = own
#endif
			:: else ->
				FINDAHEAD;
				if
				:: hit ->
					j = MAXNODES;
					do
					:: j > 0 ->
						j--;
						if
						:: hit & bit(j) ->
							FINDAT;
							if
							:: target == NONE -> target = low; ahead = low; single = true
							:: else -> single = false; target = (RELIST -> target : low); break
							fi
						:: else
						fi
					:: else -> break
					od;
					single = GRANTS
				:: else
				fi
			fi;
			asksAhead = asksAhead && ahead == k && ahead != NONE;
			v = 0;
			k = 0
		}
		if
		:: target == NONE -> goto front
		:: target == own -> garbage = garbage | OWN; target = NONE; goto requeue
		:: target != NONE && target != own && asksAhead -> goto predecessor
		:: else -> goto watching
		fi
	}

	/* The answer to the read of the predecessor behind the list. */
predecessor: atomic {
		if
		:: inbox[c]?m, v ->
			note;
			if
			:: m == there && v == ahead -> asksAhead = false; clear; goto watching
			:: m == missing && v == ahead -> asksAhead = false; clear; goto watching
			:: else -> clear; goto predecessor
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

	/* A read of the target with a watch, and one of the own node. None is sent of a watched node. */
watching: atomic {
		if
		:: up[c] ->
			if
			:: armed[c] & bit(target)
			:: else -> requests[c]!watch(target); asksTarget = true
			fi;
			if
			:: own_watched
			:: else -> requests[c]!watch(own); asksOwn = true; both = true
			fi;
			goto wait
		:: else -> asksTarget = true; goto reconnect
		fi
	}

wait:	atomic {
		if
		:: asksTarget || asksOwn || !gone && own_watched
		:: !asksTarget && !asksOwn && !own_watched && up[c] -> requests[c]!watch(own); asksOwn = true
		:: !asksTarget && !asksOwn && !own_watched && !up[c] -> asksOwn = true; goto reconnect
		:: !asksTarget && !asksOwn && own_watched && gone -> goto deletion
		fi;
		if
		:: inbox[c]?m, v ->
			note;
			if
			:: m == there || m == missing ->
				asksTarget = asksTarget && v != target;
				asksOwn = asksOwn && v != own
			:: else
			fi;
			if
			:: m == missing && v == target -> gone = MISSING; certain = !(stale[c] & bit(own))
#ifdef IGNORE_OWN
			:: m == missing && v == own -> armed[c] = armed[c] | bit(own)
#else
			:: m == missing && v == own && both -> both = false /* it is read again */
			:: m == missing && v == own && !both -> clear; goto requeue
#endif
			:: else
			fi;
			clear;
			goto wait
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

deletion: /* Of the target. The queue is listed unless that grants the lock. */
	atomic {
		gone = false;
		if
		:: certain && single -> single = false; target = NONE; goto front
		:: certain && !single && target != ahead -> target = NONE; goto relist
		:: else -> target = NONE; goto again
		fi
	}

relist:	/* Behind the list a read of the predecessor with a watch. */
	atomic {
		if
		:: up[c] ->
			requests[c]!list(0);
			if
			:: armed[c] & bit(ahead)
			:: else -> requests[c]!watch(ahead); asksAhead = true
			fi;
			goto listing
		:: broken
		fi
	}

again:	atomic {
		if
		:: up[c] -> requests[c]!list(0); goto listing
		:: broken
		fi
	}

	/* What was not answered on the last connection. The own node follows the target. */
resend:	atomic {
		if
		:: !asksTarget && !asksOwn -> goto wait
		:: asksTarget && up[c] -> requests[c]!watch(target); asksOwn = false; goto wait
		:: !asksTarget && asksOwn && up[c] -> requests[c]!watch(own); goto wait
		:: (asksTarget || asksOwn) && broken
		fi
	}
#endif

requeue: /* The own node was deleted: to the end of the queue. */
	atomic {
		LEFTFRONT;
		own = NONE;
		named = false;
		forget_target;
		goto cleanup
	}

front:
#ifdef GATE
#include GATE
#endif

grant:	atomic {
		if
		:: !lost[c] ->
			printf("client %d holds node %d\n", c, own);
			GRANTED(c);
#ifdef WITNESS
			grants++;
#endif
			holders = holders | bit(c);
			held = true
		:: lost[c] && broken
		fi;
		goto hold
	}

hold:	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == deleted && v == own ->
				holders = holders & ~bit(c);
				leaving = true;
				clear;
				goto release
			:: else -> clear; goto hold
			fi
		:: broken
		:: wants(c) ->
			printf("client %d releases\n", c);
			holders = holders & ~bit(c);
			leaving = true;
			goto release
		WHILEHOLDING
		fi
	}

#ifdef STEPS
#include STEPS
#endif

	/* Also of an acquire that has given up, and of one whose node is not known. */
release:	atomic {
		held = false;
		LEFTFRONT;
		forget_target;
		if
		:: own != NONE ->
#ifndef NO_CLEANUP
			garbage = garbage | OWN;
#endif
			own = NONE;
			named = false
		:: else
		fi;
		goto cleanup
	}

	/* Deletes nodes until the servers have confirmed it. */
cleanup:	atomic {
		working(garbage && up[c] || resends);
		if
		:: garbage && up[c] -> d_step { lowest(garbage); removal(c) }
		:: garbage && broken
		:: !garbage && leaving -> goto finish
#ifdef RESEND
		:: !garbage && !leaving && resends -> goto RESEND
#endif
		:: !garbage && !leaving && held && !resends -> turned(c); goto hold
		:: !garbage && !leaving && !held && own == NONE -> goto begin
#ifdef QUEUES
		:: in_queue -> goto resume
#else
		:: in_queue && target == NONE && !(PERMITS & bit(own)) && !first -> goto again
#ifdef GATE
		:: in_queue && target == NONE && !(PERMITS & bit(own)) && first && !resends -> goto atFront
#endif
		:: in_queue && target == NONE && (PERMITS & bit(own)) -> goto grant
		:: in_queue && target != NONE -> goto resend
#endif
		fi
	}

removing:	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == removed -> garbage = garbage & ~(unremoved); clear; goto cleanup
#ifdef QUEUES
			:: m == refused -> garbage = garbage & ~bit(v); clear; goto cleanup
#endif
			:: m == deleted && v == own && own != NONE && held ->
				holders = holders & ~bit(c);
				leaving = true;
				held = false;
				own = NONE
			:: m == deleted && v == own && own != NONE && !held && !first -> own = NONE; named = false
			:: else
			fi;
			note;
			clear;
			goto removing
		:: broken
		fi
	}

	/* To any server. The first request is a sync. */
reconnect:	atomic {
#ifdef WALK
		if
		:: !up[c] && dials[c]
		:: !up[c] && wants(c) && !leaving && own != NONE ->
			holders = holders & ~bit(c);
			leaving = true;
			goto release
		:: !up[c] && wants(c) && !leaving && own == NONE -> leaving = true; goto reconnect
		fi;
#else
		!up[c] && (room || !late[c]);
#endif
#ifdef WALK
		insync = false;
		working(resends || CREATING);
		garbage = (named && own == NONE && leaving -> 0 : garbage); /* it is looked for again */
#endif
		unanswered = unanswered || (named && own == NONE);
		/* The reads that were not answered are sent again, and the list. The watches are set again. */
		if
		:: own == NONE -> forget_target
		:: else -> lost_answers
		fi;
		if
		:: lost[c] || expired[c] ->
			lost[c] = false;
			expired[c] = false;
			holders = holders & ~bit(c);
			current[c] = 0;
			attempt[c] = 0;
			armed[c] = 0;
			stale[c] = 0;
			late[c] = 0;
			own = NONE;
			garbage = 0;
			unanswered = false;
			named = false;
			LEFTFRONT;
			DISARM(c);
			forget_target;
#ifdef RESEND
			resends = false;
#endif
			if
			:: held || leaving -> held = false; leaving = true; goto finish
			:: else
			fi;
			connect(c)
		:: else ->
			connect(c);
#ifndef NO_SYNC
			requests[c]!sync(0);
#endif
			/* Also a watch whose read waits for the connection, as far as the client knows. */
			stale[c] = armed[c];
			if
			:: stale[c] = stale[c] | read_later(c)
#ifndef WALK
			:: read_later(c) -> skip
#endif
			fi;
#ifndef OLD_WATCHES
			if
			:: armed[c] || ALSOARMED(c) -> requests[c]!rewatch(0)
			:: else
			fi
#endif
		fi
	}

	/* Nothing waits for the answer to the sync: the servers answer in order. */
synchronized: atomic {
		if
#ifdef WALK /* The code looks for other nodes while it goes on. */
		:: !(named && own == NONE) && !resends -> goto cleanup
#else
		:: !unanswered -> goto cleanup
#endif
		:: else
		fi;
		if
#ifdef WALK /* The search is one step, once the sync and the events behind it have arrived. */
		:: inbox[c]?m, v ->
			insync = insync || m == synced;
			note;
			clear;
			if
			:: insync && empty(replies[c]) -> insync = false; v = seen[at[c]]; goto search
			:: !insync || nempty(replies[c]) -> goto synchronized
			fi
#else
		:: up[c] -> requests[c]!list(0)
#endif
		:: broken
		fi
	}

	/* For the nodes with the GUIDs of creates without an answer. */
looking:	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == listed
			:: else -> note; clear; goto looking
			fi
		:: broken
		fi
	}

search:	atomic {
		d_step {
#ifdef WALK
			leaving = leaving || wants(c);
#endif
			if
			:: own == NONE && named && !leaving && (v & attempt[c]) ->
				lowest(v & attempt[c]);
				own = low;
				attempt[c] = 0
#ifdef RESEND
			:: resends && !leaving && (v & attempt[c]) ->
				lowest(v & attempt[c]);
				attempt[c] = 0;
				resends = false;
				FOUND
			:: resends && leaving -> resends = false
#endif
			:: else
			fi;
			garbage = garbage | (v & current[c] & ~((own == NONE) -> 0 : OWN));
			clear
		}
		if
		:: own == NONE && named && !leaving && !garbage -> goto enqueue
		:: else -> goto cleanup
		fi
	}

finish:	atomic {
		d_step {
			finished[c] = true;
			attempt[c] = 0;
			dropReplies(c);
			armed[c] = 0;
			stale[c] = 0;
			DISARM(c);
			UNWATCH(c);
			watches[c] = 0
		}
		held = false;
		named = false;
		own = NONE;
		garbage = 0;
#ifdef FORGETS
		if
		:: unanswered = false
		:: true
		fi
#endif
	}

end:	atomic {
		!up[c] && late[c];
		goto reconnect
	}
}

/* Once nothing can happen any more, every client has finished, and no node is left. */
init
{
	atomic {
		k = 0;
		do
		:: k < CLIENTS -> up[k] = true; run Connection(k); run Client(k) atOnce; k++
		:: else -> break
		od;
#ifdef FOLLOWER
		run Follower();
#endif
#ifdef RESTORE
		run Restore();
#endif
#ifdef WALK
#ifdef QUEUES
		run Drain() priority 5;
#endif
		started = true;
#endif
		k = 0
	}
	atomic {
		timeout;
#ifdef WALK
		observeAll(0);
		printf("the end\n");
#endif
#ifndef EXCLUSION_ONLY
		k = 0;
		do
		:: k < CLIENTS -> assert(finished[k]); k++
		:: else -> break
		od;
		assert(seen[0] == 0);
#endif
#ifdef WITNESS
		assert(grants < CLIENTS);
#endif
		k = 0
	}
}
