/* The steps of a holder that has sent a guarded write. */
guarding: atomic {
		if
		:: inbox[c]?m, v ->
			if
			:: m == taken || m == deleted && v == own ->
				holders = holders & ~bit(c);
				leaving = true;
				clear;
				goto release
			:: else -> clear; goto guarding
			fi
		:: broken
		fi
	}
