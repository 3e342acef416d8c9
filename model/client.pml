/*
 * A client that acquires a lock once, and releases it.
 *
 * A model defines
 *   OWN           the set of the own nodes, of which own is the first
 *   FINDAHEAD     sets hit to the conflicting nodes ahead of them in the list v
 *   GRANTS        whether the deletion of the target grants the lock; single: no other one conflicts
 *   RELIST        0, or 1 if the client watches the predecessor, and not the node before it
 *   GRANTED       what is asserted when a hold begins
 *   WHILEHOLDING  what a holder may do, as options of an if
 *   STEPS         a file with the steps of such options; may be missing
 *   GATE          a file with the steps between the front of the queue and the hold; may be missing
 *   BEGIN         the label of the first step
 */

#ifndef BEGIN
#define BEGIN enqueue
#endif
#ifndef IMPATIENT
#define IMPATIENT 0 /* the clients that may give up at any time */
#endif

#ifndef PERMITS
#define PERMITS 0 /* the nodes that are permits of a semaphore */
#endif

/* clear forgets a message, which makes fewer states. */
#define clear m = 0; v = 0

/* broken is the option of a step that waits for a reply. */
#define broken !up[c] -> clear; goto reconnect

#define in_queue (!garbage && !leaving && !held && own != NONE)

#ifdef WITNESS
byte grants;
#endif

proctype Client(byte c)
{
	mtype m;
	byte v;
	byte own = NONE;     /* the own node */
	byte target = NONE;  /* the node that is watched */
	byte garbage;        /* nodes to delete */
	bool single;         /* the target is the only conflicting node ahead */
	bool gone;           /* the target does not exist */
	bool exists;         /* the own node is watched */
	bool unanswered;     /* a create had no answer */
	bool leaving;        /* the client has given up or released */
	bool held;
	bool named;          /* a create was sent */
	bool first;          /* the client of a semaphore has been at the front of the queue */
	bool queued;         /* the client must enter the queue */
#ifdef LOCALS
	LOCALS
#endif

	/* A new attempt, with a new GUID. */
begin:	atomic {
		own = NONE;
		target = NONE;
		named = false;
		attempt[c] = 0;
		if
		:: late[c] == 1 || late[c] == 2 -> late[c] = late[c] + 2
		:: else
		fi;
		if
		:: leaving -> goto finish
		:: !leaving && !queued -> goto BEGIN
		:: !leaving && queued -> goto enqueue
		fi
	}

	/* A create, and a list right behind it. */
enqueue:	atomic {
		if
		:: up[c] -> requests[c]!create(0); requests[c]!list(0); named = true
		:: broken
		fi
	}

naming:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: m == created -> own = v; attempt[c] = 0; clear
			:: else -> clear; goto naming
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && !leaving -> leaving = true; goto naming
		fi;
		if
		:: leaving -> goto release
		:: else
		fi
	}

listing:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: m == listed -> skip
			:: m == deleted && v == own -> clear; goto requeue
			:: else -> clear; goto listing
			fi
		:: broken
		:: (IMPATIENT & bit(c)) -> leaving = true; goto release
		fi;
		d_step {
			m = 0;
			single = false;
			target = NONE;
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
							if
							:: target == NONE -> target = j; single = true
							:: else -> single = false; target = (RELIST -> target : j); break
							fi
						:: else
						fi
					:: else -> break
					od;
					single = GRANTS
				:: else
				fi
			fi;
			v = 0
		}
		if
		:: target == NONE -> goto front
		:: target == own -> garbage = garbage | OWN; target = NONE; goto requeue
		:: else -> goto watching
		fi
	}

	/* A read of the target and one of the own node, both with a watch. */
watching:	atomic {
		gone = false;
		exists = false;
		if
		:: up[c] -> requests[c]!watch(target); requests[c]!watch(own)
		:: broken
		fi
	}

wait:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: (m == missing || m == deleted) && v == target -> gone = true
#ifndef IGNORE_OWN
			:: (m == missing || m == deleted) && v == own -> clear; goto requeue
#endif
			:: m == there && v == own -> exists = true
			:: else
			fi;
			clear
		:: broken
		:: (IMPATIENT & bit(c)) -> leaving = true; gone = false; exists = false; goto release
		fi;
		if
		:: gone && exists ->
			gone = false;
			exists = false;
			if
			:: single -> single = false; target = NONE; goto front
			:: else -> target = NONE; goto again
			fi
		:: else -> goto wait
		fi
	}

again:	atomic {
		if
		:: up[c] -> requests[c]!list(0); goto listing
		:: broken
		fi
	}

requeue: /* The own node was deleted: to the end of the queue. */
	atomic {
		first = false;
		own = NONE;
		target = NONE;
		single = false;
		gone = false;
		exists = false;
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
		:: replies[c]?m, v ->
			if
			:: m == deleted && v == own ->
				holders = holders & ~bit(c);
				leaving = true;
				clear;
				goto release
			:: else -> clear; goto hold
			fi
		:: broken
		:: true ->
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
		first = false;
		single = false;
		target = NONE;
		if
		:: own != NONE ->
#ifndef NO_CLEANUP
			garbage = garbage | OWN;
#endif
			own = NONE
		:: else
		fi;
		goto cleanup
	}

	/* Deletes nodes until the servers have confirmed it. */
cleanup:	atomic {
		if
		:: garbage && up[c] -> d_step { lowest(garbage); requests[c]!remove(low) }
		:: garbage && broken
		:: !garbage && leaving -> goto finish
		:: !garbage && !leaving && held -> goto hold
		:: !garbage && !leaving && !held && own == NONE -> goto begin
		:: in_queue && target == NONE && !(PERMITS & bit(own)) && !first -> goto again
#ifdef GATE
		:: in_queue && target == NONE && !(PERMITS & bit(own)) && first -> goto counting
#endif
		:: in_queue && target == NONE && (PERMITS & bit(own)) -> goto grant
		:: in_queue && target != NONE -> goto wait
		fi
	}

removing:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: m == removed -> garbage = garbage & ~bit(v); clear; goto cleanup
			:: m == deleted && v == own && own != NONE && held ->
				holders = holders & ~bit(c);
				leaving = true;
				held = false;
				own = NONE
			:: m == deleted && v == own && own != NONE && !held -> own = NONE; named = false
			:: else
			fi;
			clear;
			goto removing
		:: broken
		fi
	}

	/* To any server. The first request is a sync. */
reconnect:	atomic {
		!up[c] && (room || !late[c]);
		unanswered = unanswered || (named && own == NONE);
#ifndef OLD_WATCHES
		single = false;
		target = NONE;
		gone = false;
		exists = false;
#endif
		if
		:: lost[c] || expired[c] ->
			lost[c] = false;
			expired[c] = false;
			holders = holders & ~bit(c);
			current[c] = 0;
			attempt[c] = 0;
			late[c] = 0;
			own = NONE;
			garbage = 0;
			unanswered = false;
			named = false;
			first = false;
			single = false;
			target = NONE;
			gone = false;
			exists = false;
			if
			:: held || leaving -> held = false; leaving = true; goto finish
			:: else
			fi
		:: else
		fi;
		connect(c);
#ifdef NO_SYNC
		goto synchronized
#else
		requests[c]!sync(0)
#endif
	}

syncing:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: m == synced -> clear; goto synchronized
			:: else -> clear; goto syncing
			fi
		:: broken
		fi
	}

synchronized:	atomic {
		if
		:: !unanswered -> goto cleanup
		:: unanswered && up[c] -> requests[c]!list(0)
		:: unanswered && broken
		fi
	}

	/* For the nodes with the GUIDs of creates without an answer. */
looking:	atomic {
		if
		:: replies[c]?m, v ->
			if
			:: m == listed
			:: else -> clear; goto looking
			fi
		:: broken
		fi;
		d_step {
			if
			:: own == NONE && named && !leaving && (v & attempt[c]) ->
				lowest(v & attempt[c]);
				own = low;
				attempt[c] = 0
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
		:: k < CLIENTS -> up[k] = true; run Connection(k); run Client(k); k++
		:: else -> break
		od;
#ifdef FOLLOWER
		run Follower();
#endif
#ifdef RESTORE
		run Restore();
#endif
		k = 0
	}
	atomic {
		timeout;
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
