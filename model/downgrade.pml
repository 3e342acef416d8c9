/*
 * The steps of a writer that becomes a reader. If there is no answer it looks for the new node, and sends
 * the transaction again if there is none.
 */
downgrade: atomic {
		if
		:: up[c] -> requests[c]!special(own); goto downgrading
		:: broken
		fi
	}

downgrading: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken ->
				writing = 0;
				garbage = bit(own);
				own = v;
				attempt[c] = 0;
				resends = false;
				clear;
				goto cleanup
			:: m == refused || m == deleted && v == own ->
				holders = holders & ~bit(c);
				leaving = true;
				resends = false;
				clear;
				goto release
			:: else -> note; clear; goto downgrading
			fi
		:: !up[c] -> unanswered = true; resends = true; clear; goto reconnect
		fi
	}
