/* The steps of a client of a semaphore, at the front of the queue and before it enters the queue. */

	atomic {
		first = true;
		mustList = true;
		goto counting
	}

atFront: /* What there is still to do, also on a new connection. */
	atomic {
		if
		:: asksOwn && up[c] -> requests[c]!watch(own); goto awaitChange
		:: !asksOwn && mustList -> goto counting
		:: !asksOwn && !mustList -> goto awaitChange
		:: asksOwn && broken
		fi
	}

counting: /* The permits, with a watch. After a refusal, after a sync. */
	atomic {
		if
		:: up[c] && !proves -> goto count
#ifdef WALK /* The sync is one step with the list, once what is on its way has arrived. */
		:: up[c] && proves && empty(replies[c]) -> goto count
		:: up[c] && proves && nempty(replies[c]) -> skip
#else
		:: up[c] && proves -> requests[c]!sync(0)
#endif
		:: broken
		fi
	}

synchronizing:
	atomic {
		if
		:: inbox[c]?m, v ->
#ifdef WALK
			note;
			clear;
			goto counting
#else
			if
			:: m == synced -> clear
			:: else -> note; clear; goto synchronizing
			fi
#endif
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

count:	atomic {
		if
		:: up[c] -> fired = false; listing_permits(true); requests[c]!special(COUNT)
		:: broken
		fi
	}

awaitCount: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == counted -> mustList = false; listing_permits(false); armedPermits[c] = true
			:: else -> note; clear; goto awaitCount
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi;
		clear;
		if
		:: ones(counts[c]) < LIMIT -> expects[c] = (proves -> NONE : countedAt[c]); goto exchange
		:: else -> waited = true; asksOwn = !own_watched; goto atFront
		fi
	}

awaitChange: /* Until the permits change. */
	atomic {
		if
		:: asksOwn || !fired && !mustList
		:: !asksOwn && (fired || mustList) -> fired = false; mustList = true; goto counting
		fi;
		if
		:: inbox[c]?m, v ->
			note;
			if
			:: m == there && v == own -> asksOwn = false
			:: m == missing && v == own -> clear; goto requeue
			:: m == deleted && v == own -> mustList = true
			:: else
			fi;
			clear;
			goto awaitChange
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

exchange:
	atomic {
		if
		:: up[c] -> resends = false; working(true); requests[c]!special(own)
		:: !up[c] -> resends = true; goto reconnect
		fi
	}

exchanging:
	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken -> own = v; attempt[c] = 0; LEFTFRONT; clear; goto grant
			:: m == refused ->
				working(false);
				proves = true;
				mustList = true;
				asksOwn = !own_watched;
				clear;
				goto atFront
			:: m == missing && v == own -> garbage = garbage | bit(own); clear; goto requeue
			:: else -> note; clear; goto exchanging
			fi
		:: !up[c] -> unanswered = true; resends = true; clear; goto reconnect
		fi
	}

resendSpecial:
	atomic {
		if
		:: first -> goto exchange
		:: else -> goto direct
		fi
	}

direct:	atomic {
		if
		:: up[c] -> resends = false; working(true); requests[c]!special(DIRECT)
		:: broken
		fi
	}

directly:
	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken -> own = v; attempt[c] = 0; working(false); clear; goto grant
			:: m == toomany ->
				garbage = garbage | bit(v);
				attempt[c] = 0;
				working(false);
				queued = true;
				clear;
				goto cleanup
			:: else -> note; clear; goto directly
			fi
		:: !up[c] -> unanswered = true; resends = true; clear; goto reconnect
		fi
	}
