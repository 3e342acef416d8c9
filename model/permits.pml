/* The steps of a client of a semaphore, at the front of the queue and before it enters the queue. */

counting: /* The permits, with a watch. After a refusal, after a sync. */
	atomic {
		first = true;
		forget_count;
		if
		:: up[c] && !proves -> requests[c]!special(COUNT)
		:: up[c] && proves -> requests[c]!sync(0); requests[c]!special(COUNT)
		:: broken
		fi
	}

counted: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == listed -> room_left = ones(v & permits) < LIMIT
			:: m == deleted && v == own -> m = 0; v = 0; forget_count; goto requeue
			:: m == deleted && v != own -> changed = true
			:: m == proof -> answered = true
			:: else
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; forget_count; proves = false; goto release
		fi;
		if
		:: answered && room_left ->
			expects[c] = (proves -> NONE : v);
			attempt[c] = bit(own);
			target = own;
			own = NONE;
			forget_count;
			proves = false;
			clear;
			requests[c]!special(target);
			goto exchanging
		:: answered && !room_left && changed -> m = 0; v = 0; changed = false; answered = false; goto counting
		:: else -> clear; goto counted
		fi
	}

exchanging:
	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken ->
				own = v;
				first = false;
				attempt[c] = 0;
				expects[c] = 0;
				target = NONE;
				clear;
				goto grant
			:: m == refused -> own = target; proves = true; target = NONE; clear; goto counting
			:: m == missing && v == target -> clear; goto requeue
			:: else -> clear; goto exchanging
			fi
		:: broken
		fi
	}

direct:	atomic {
		if
		:: up[c] -> requests[c]!special(DIRECT); goto directly
		:: broken
		fi
	}

directly:
	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken -> own = v; attempt[c] = 0; clear; goto grant
			:: m == refused ->
				garbage = garbage | bit(v);
				attempt[c] = 0;
				queued = true;
				clear;
				goto cleanup
			:: else -> clear; goto directly
			fi
		:: !up[c] -> unanswered = true; queued = true; clear; goto reconnect
		fi
	}
