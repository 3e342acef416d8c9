/*
 * The steps of a writer that becomes a reader. If there is no answer it does not, and the new node is
 * deleted.
 */
downgrading: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken -> writing = 0; garbage = bit(own); own = v; clear; goto cleanup
			:: m == refused || m == deleted && v == own ->
				holders = holders & ~bit(c);
				leaving = true;
				clear;
				goto release
			:: else -> clear; goto downgrading
			fi
		:: !up[c] -> unanswered = true; goto reconnect
		fi
	}
