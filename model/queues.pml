/*
 * The steps of a client between the create and the front of the queues. It waits in both at the same time: a
 * message is about one queue, and what follows from it is done at once. Nothing differs from the steps of a
 * client with one queue otherwise.
 */

/* consider takes in list v of queue q: see listing in client.pml. */
#define consider(q) \
	lists[q] = false; \
	k = ahead[q]; \
	target[q] = NONE; \
	ahead[q] = NONE; \
	single[q] = false; \
	gone[q] = false; \
	certain[q] = false; \
	hit = v & inQueue(q) & (bit(ownIn(q)) - 1); \
	j = MAXNODES; \
	do \
	:: j > 0 && hit -> \
		j--; \
		if \
		:: (hit & bit(j)) && ahead[q] == NONE -> target[q] = j; ahead[q] = j; single[q] = true \
		:: (hit & bit(j)) && ahead[q] != NONE -> target[q] = j; single[q] = false; break \
		:: else \
		fi \
	:: else -> break \
	od; \
	atFront[q] = ahead[q] == NONE; \
	waited = waited || !atFront[q]; \
	asksAhead[q] = asksAhead[q] && ahead[q] == k && !atFront[q]; \
	k = 0; \
	if \
	:: !atFront[q] && !asksAhead[q] -> watch_target(q) \
	:: else \
	fi

/* watch_target reads the target of queue q and the own node: see watching. */
#define watch_target(q) \
	if \
	:: !up[c] -> asksTarget[q] = true \
	:: up[c] && !(armed[c] & bit(target[q])) -> requests[c]!watch(target[q]); asksTarget[q] = true \
	:: else \
	fi; \
	if \
	:: up[c] && !ownIsWatched(q) -> requests[c]!watch(ownIn(q)); asksOwn[q] = true; both[q] = true \
	:: else \
	fi

/* goOn does in queue q what follows when nothing is asked: see wait, deletion and relist. */
#define goOn(q) \
	if \
	:: atFront[q] || lists[q] || asksAhead[q] || asksTarget[q] || asksOwn[q] \
	:: else -> \
		if \
		:: !ownIsWatched(q) -> requests[c]!watch(ownIn(q)); asksOwn[q] = true \
		:: ownIsWatched(q) && !gone[q] \
		:: ownIsWatched(q) && gone[q] && certain[q] && single[q] -> \
			gone[q] = false; \
			atFront[q] = true; \
			target[q] = NONE; \
			ahead[q] = NONE \
		:: ownIsWatched(q) && gone[q] && !(certain[q] && single[q]) -> \
			gone[q] = false; \
			lists[q] = true; \
			requests[c]!list(q); \
			if \
			:: certain[q] && target[q] != ahead[q] && !(armed[c] & bit(ahead[q])) -> \
				requests[c]!watch(ahead[q]); \
				asksAhead[q] = true \
			:: else \
			fi; \
			target[q] = NONE \
		fi \
	fi

listing: /* The code waits for both lists behind the create before it goes on in a queue. */
	atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == listed -> heard = v; one = true; clear; goto listing
			:: m == listedB -> skip
			:: else -> note; clear; goto listing
			fi
		:: !up[c] && one -> one = false; v = heard; heard = 0; d_step { consider(0) }; clear; goto reconnect
		:: !up[c] && !one -> clear; goto reconnect
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi;
		d_step {
			q = 1;
			consider(1);
			if
			:: one -> q = 0; v = heard; heard = 0; one = false; consider(0)
			:: else
			fi;
			q = 0;
			clear
		}
	}

queueing: atomic {
		if
		:: atFront[0] && atFront[1] && wantsBoth(c) && waited -> goto checking
		:: atFront[0] && atFront[1] && !(wantsBoth(c) && waited) -> goto front
		:: !atFront[0] || !atFront[1]
		fi;
		if
		:: inbox[c]?m, v ->
			d_step {
				if
				:: m == listed -> q = 0
				:: m == listedB -> q = 1
				:: (m == there || m == missing || m == deleted) && (queueB & bit(v)) -> q = 1
				:: else -> q = 0
				fi;
				if
				:: m == deleted && v == target[q] -> gone[q] = true; certain[q] = !(stale[c] & bit(v))
				:: else
				fi;
				note;
				if
				:: (m == listed || m == listedB) && lists[q] -> consider(q)
				:: (m == there || m == missing) && asksAhead[q] && !lists[q] && v == ahead[q] ->
					asksAhead[q] = false;
					watch_target(q)
				:: (m == there || m == missing) && !(asksAhead[q] && !lists[q] && v == ahead[q]) ->
					asksTarget[q] = asksTarget[q] && v != target[q];
					asksOwn[q] = asksOwn[q] && v != ownIn(q);
					if
					:: m == missing && v == target[q] -> gone[q] = MISSING; certain[q] = !(stale[c] & bit(ownIn(q)))
					:: else
					fi
				:: else
				fi;
				clear;
				goOn(q);
				q = 0
			}
			goto queueing
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

checking: /* The other node may have been deleted while one was waited for. */
	atomic {
		if
		:: up[c] -> requests[c]!special(own)
		:: broken
		fi
	}

checked: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken -> clear; goto front
			:: m == missing && v == own -> clear; garbage = garbage | OWN; goto requeue
			:: else -> note; clear; goto checked
			fi
		:: broken
		:: (IMPATIENT & bit(c)) && wants(c) -> leaving = true; goto release
		fi
	}

resume:	/* What was not answered on the last connection. The own node follows the target. */
	atomic {
		if
		:: up[c] ->
			d_step {
				q = 0;
				do
				:: q < 2 ->
					if
					:: atFront[q]
					:: !atFront[q] && lists[q] -> requests[c]!list(q)
					:: !atFront[q] && !lists[q] && asksTarget[q] -> requests[c]!watch(target[q]); asksOwn[q] = false
					:: !atFront[q] && !lists[q] && !asksTarget[q] && asksOwn[q] -> requests[c]!watch(ownIn(q))
					:: else
					fi;
					if
					:: !atFront[q] && !lists[q] && !asksTarget[q] && !asksOwn[q] -> goOn(q)
					:: else
					fi;
					q++
				:: else -> break
				od;
				q = 0
			}
			goto queueing
		:: broken
		fi
	}
