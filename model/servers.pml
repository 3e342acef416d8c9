/*
 * The servers and the connections, for all models.
 *
 * A node is a number. The servers give the numbers 0, 1, 2, ... in the order of their transactions, so
 * a number is also a sequence number, a czxid and a fencing token.
 *
 * Server 0 is the ZooKeeper leader. With FOLLOWER there is a server 1, which is up to LAG transactions
 * behind. Each client has one connection: a queue of requests and a queue of replies and events. The
 * servers answer the requests of a connection in their order.
 *
 * Budgets bound what goes wrong, and so the number of states: DROPS, LOSSES, DELETIONS. Each model
 * defines CREATE, what a create does, and SPECIAL, its own requests.
 */

#include "sets.pml"

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef DROPS
#define DROPS 1 /* connections that break */
#endif
#ifndef LOSSES
#define LOSSES 1 /* sessions that are lost */
#endif
#ifndef DELETIONS
#define DELETIONS 0 /* lock nodes that an operator deletes */
#endif
#ifndef IMPATIENT
#define IMPATIENT 0 /* the clients that may give up at any time */
#endif
#ifndef LAG
#define LAG 2
#endif

#define room (len(stream) < LAG)
#ifndef LISTED
#define LISTED(c) true
#endif
#if defined(TURNS) && defined(TURNFIRST) /* each holder that can turn does so before it releases */
#define RELEASING(c) !TURNS(c)
#else
#define RELEASING(c) true
#endif
#ifndef BREAKING
#define BREAKING(c) true
#endif
#ifndef WATCHED
#define WATCHED(c, before, now) skip
#define WATCHAGAIN(c) skip
#define UNWATCH(c) skip
#endif
#define listable(c) (LISTED(c) || !requests[c]?[list, _])
#define reads(c) (requests[c]?[list, _] || requests[c]?[watch, _] || requests[c]?[rewatch, _])

/*
 * A walk is a run that is printed, and replayed on the code: see docs/model.md. The clients take their
 * own steps at once. What a client receives when, when it connects, gives up, releases, and does what only
 * one lock has (TURNS) are steps of the process Connection. A model may define when a server lists the
 * nodes (LISTED) and when a connection breaks (BREAKING).
 */
#ifdef WALK
#define LEAVE 1
#define TURN 2
#define wants(c) (wish[c] == LEAVE)
#define turns(c) (wish[c] == TURN)
#define turned(c) wish[c] = (turns(c) -> 0 : wish[c])
#ifdef QUEUES
#define isRead(c) (replies[c]?[listed, _] || replies[c]?[listedB, _] || replies[c]?[there, _] || \
	replies[c]?[missing, _])
#else
#define isRead(c) false
#endif
#define calm(c) (!(busy & ~bit(c))) /* for a client of the code a deletion has a second */
#define working(b) busy = ((b) -> busy | bit(c) : busy & ~bit(c))
#define atOnce priority 10
#define observe observeAll(c)
#else
#define wants(c) true
#define turns(c) true
#define turned(c) skip
#define working(b) skip
#define calm(c) true
#define inbox replies
#define atOnce
#define observe skip
#endif

mtype = {
	create, list, watch, remove, removeBoth, sync, rewatch, special, /* requests */
	created, listed, listedB, there, missing, removed, synced, refused, taken, toomany, counted, /* replies */
	deleted, changed                                    /* events */
};

#ifndef QUEUES
chan requests[CLIENTS] = [4] of { mtype, byte };
chan replies[CLIENTS] = [7] of { mtype, Set };
#else
chan requests[CLIENTS] = [6] of { mtype, byte };
chan replies[CLIENTS] = [10] of { mtype, Set };
#endif

/* Transactions on their way to the follower: the nodes after it, what VERSION is then, and the reply. */
chan stream = [LAG] of { Set, byte, byte, mtype, byte };

Set seen[2];          /* the nodes that exist, as each server has applied it */
byte version[2];       /* of a directory that a model writes, likewise */
byte next;             /* the number of the next node */
bool up[CLIENTS];      /* the connection stands */
byte at[CLIENTS];      /* the server of the connection */
bool waiting[CLIENTS]; /* the follower waits for the answer of the leader */
Set watches[CLIENTS]; /* the nodes that are watched on the connection */
Set armed[CLIENTS];   /* the nodes that the client knows to be watched */
Set stale[CLIENTS];   /* those of them that were watched on an earlier connection */
Set current[CLIENTS]; /* the nodes that the session has created */
Set former[CLIENTS];  /* those of a session that the client has lost and the servers have not expired */
Set attempt[CLIENTS]; /* the nodes with the GUID of the present attempt */
byte late[CLIENTS];    /* 1 + the server that has kept a create of a broken connection; 0: none */
bool lost[CLIENTS];    /* the client has lost its session */
bool expired[CLIENTS]; /* the servers have expired a session that the client has not lost yet */
bool finished[CLIENTS];

byte drops = DROPS;
byte losses = LOSSES;
byte deletions = DELETIONS;

#ifdef WALK
chan inbox[CLIENTS] = [1] of { mtype, Set };
byte wish[CLIENTS];    /* what the client must do: LEAVE, to give up or release; TURN; 0: nothing */
byte busy;             /* the clients whose transaction or deletion is not answered: they do not give up */
bool dials[CLIENTS];   /* the client may connect */
bool started;
byte drains = NONE;    /* the client that receives all answers to its reads in one step; NONE: there is none */
#endif

byte holders; /* the clients with a valid hold */

hidden byte i, j, k; /* for one step only */
hidden Set hit, after, low;
hidden mtype tm;

/* apply makes set the nodes of a server, and sends the events of what was deleted. */
inline apply(server, set)
{
	i = 0;
	do
	:: i < CLIENTS ->
		if
		:: up[i] && at[i] == server ->
			hit = watches[i] & seen[server] & ~set;
			watches[i] = watches[i] & ~hit;
			j = 0;
			do
			:: j < MAXNODES ->
				if
				:: hit & bit(j) -> replies[i]!deleted(j)
				:: else
				fi;
				j++
			:: else -> break
			od;
			WATCHED(i, seen[server], set)
		:: else
		fi;
		i++
	:: else -> break
	od;
	seen[server] = set
}

/* forgetDeleted drops deleted nodes from the sets of clients, which makes fewer states. */
inline forgetDeleted()
{
	assert(next <= MAXNODES);
	i = 0;
	do
	:: i < CLIENTS ->
		current[i] = current[i] & after;
		attempt[i] = attempt[i] & after;
		former[i] = former[i] & after;
		i++
	:: else -> break
	od
}

/* setAgain sets the watches of client c on its new connection, and sends the events that it has missed. */
inline setAgain(c)
{
	watches[c] = watches[c] | (armed[c] & seen[at[c]]);
	hit = armed[c] & ~seen[at[c]];
	j = 0;
	do
	:: j < MAXNODES ->
		if
		:: hit & bit(j) -> replies[c]!deleted(j)
		:: else
		fi;
		j++
	:: else -> break
	od;
	WATCHAGAIN(c)
}

/* commit makes the nodes of the leader be after, and answers client c. */
inline commit(c, reply, value)
{
	apply(0, after);
	forgetDeleted();
#ifdef FOLLOWER
	if
	:: up[c] && at[c] == 1 -> waiting[c] = true; stream!after, version[0], c, reply, value
	:: up[c] && at[c] == 0 -> replies[c]!reply(value); stream!after, version[0], NONE, reply, 0
	:: else -> stream!after, version[0], NONE, reply, 0
	fi
#else
	if
	:: up[c] -> replies[c]!reply(value)
	:: else
	fi
#endif
}

/* commitQuietly makes the nodes of the leader be after, and answers no client. */
inline commitQuietly()
{
	forgetDeleted();
	apply(0, after);
#ifdef FOLLOWER
	stream!after, version[0], NONE, removed, 0
#endif
}

/* lowest sets low to the first node of a set that is not empty. */
inline lowest(set)
{
	low = 0;
	do
	:: (set) & bit(low) -> break
	:: else -> low++
	od
}

/* dropReplies drops what client c has not received. */
inline dropReplies(c)
{
	do
	:: nempty(replies[c]) -> replies[c]?_, _
	:: empty(replies[c]) -> break
	od
}

/* disconnect breaks the connection of client c. What was on its way is lost. */
inline disconnect(c)
{
	up[c] = false;
#ifdef WALK
	dials[c] = false;
#endif
	waiting[c] = false;
	do
	:: nempty(requests[c]) -> requests[c]?_, _
	:: empty(requests[c]) -> break
	od;
	dropReplies(c);
#ifdef FOLLOWER
	i = len(stream);
	do
	:: i > 0 ->
		stream?after, hit, j, tm, low;
		if
		:: j == c -> stream!after, hit, NONE, tm, 0
		:: else -> stream!after, hit, j, tm, low
		fi;
		i--
	:: else -> break
	od;
#endif
	UNWATCH(c);
	watches[c] = 0
}

/* lose ends the session of client c by the client's deadline, and with it the hold. */
inline lose(c)
{
	disconnect(c);
	lost[c] = true;
	late[c] = 0;
	holders = holders & ~bit(c);
	former[c] = former[c] | current[c];
	current[c] = 0
}

#ifdef WALK
/*
 * observeAll prints the state before a step: the nodes and the holders, and for each client whether it is
 * connected, its nodes, those of its lost session, those that it watches, whether it has lost its
 * session, whether it has finished, and its requests, replies and events that are on their way.
 */
inline observeAll(c)
{
	printf("state %d %d", seen[0], holders);
	k = 0;
	do
	:: k < CLIENTS ->
		printf(" | %d %d %d %d %d %d", up[k], current[k], former[k], watches[k], lost[k], finished[k]);
		i = len(requests[k]);
		do
		:: i > 0 -> requests[k]?tm, low; requests[k]!tm, low; printf(" %e %d", tm, low); i--
		:: else -> break
		od;
		printf(" :");
		i = len(replies[k]);
		do
		:: i > 0 -> replies[k]?tm, low; replies[k]!tm, low; printf(" %e %d", tm, low); i--
		:: else -> break
		od;
		k++
	:: else -> break
	od;
	printf("\n")
}
#endif

/* connect makes a connection of the session of client c to any server. If that server has kept a create,
 * the server passes it on now or never. */
inline connect(c)
{
	if
	:: at[c] = 0
#ifdef FOLLOWER
	:: at[c] = 1
#endif
	fi;
	if
	:: late[c] && (late[c] - 1) % 2 == at[c] ->
		if
		:: d_step {
			printf("server %d passes on a late create of client %d\n", at[c], c);
			CREATELATE(c)
		   }
		:: true
		fi;
		late[c] = 0
	:: else
	fi;
	up[c] = true;
	printf("client %d connects to server %d\n", c, at[c])
}

/* answer answers a read of client c. */
inline answer(c)
{
	if
	:: m == list && n == 0 -> replies[c]!listed(seen[at[c]])
	:: m == list && n == 1 -> replies[c]!listedB(seen[at[c]])
	:: m == watch && (seen[at[c]] & bit(n)) -> watches[c] = watches[c] | bit(n); replies[c]!there(n)
	:: m == watch && !(seen[at[c]] & bit(n)) -> replies[c]!missing(n)
	fi
}

/* Connection is the servers' part of the connection and of the session of client c. */
proctype Connection(byte c)
{
	mtype m;
	Set n;

end:	do
	:: d_step {
		up[c] && !waiting[c] && nempty(requests[c]) && (room || reads(c)) && listable(c) ->
		observe;
		requests[c]?m, n;
		printf("server %d: client %d: %e %d\n", at[c], c, m, n);
		if
		:: m == create -> CREATE(c)
		:: m == list || m == watch ->
			answer(c);
#if defined(WALK) && defined(QUEUES)
			do
			:: requests[c]?[list, _] || requests[c]?[watch, _] -> requests[c]?m, n; answer(c)
			:: else -> break
			od
#endif
		:: m == rewatch -> setAgain(c)
		:: m == remove -> after = seen[0] & ~bit(n); commit(c, removed, n)
		:: m == removeBoth && (seen[0] & bit(n)) ->
			after = seen[0] & ~(bit(n) | bit(n + 1));
			commit(c, removed, n)
		:: m == removeBoth && !(seen[0] & bit(n)) -> after = seen[0]; commit(c, refused, n)
		:: m == sync ->
			after = seen[0];
			commit(c, synced, 0);
#ifdef WALK
			if
			:: requests[c]?[rewatch, _] -> requests[c]?m, n; setAgain(c)
			:: else
			fi
#endif
		:: m == special -> SPECIAL(c, n)
		fi;
		m = 0;
		n = 0
	   }

	/* The connection breaks. A create on its way is lost, or the server keeps it. */
	:: atomic {
		drops > 0 && up[c] && (!finished[c] || late[c]) && BREAKING(c) ->
		observe;
		drops--;
		printf("connection of client %d breaks\n", c);
#ifndef WALK
		if
		:: late[c] == 0 && !waiting[c] && requests[c]??[create, 0] -> late[c] = 1 + at[c]
		:: true
		fi;
#endif
		d_step { disconnect(c) }
	   }

	/* The client's deadline passes. Nothing but its own clock tells the client. */
	:: d_step {
		losses > 0 && !finished[c] && !lost[c] && calm(c) ->
		observe;
		losses--;
		printf("client %d loses its session\n", c);
		lose(c)
	   }

	/* The servers expire a session that its client has lost before. */
	:: d_step {
		room && former[c] & seen[0] ->
		observe;
		printf("servers expire the lost session of client %d\n", c);
		after = seen[0] & ~former[c];
		commitQuietly()
	   }
#ifdef NO_DEADLINE
	/* The servers expire a session that the client relies on. */
	:: d_step {
		room && losses > 0 && !expired[c] && !finished[c] && current[c] & seen[0] ->
		losses--;
		expired[c] = true;
		printf("servers expire the session that client %d relies on\n", c);
		disconnect(c);
		after = seen[0] & ~current[c];
		commitQuietly()
	   }
#endif
	/* An operator deletes a lock node: of any client, or of one that is not at the front. */
	:: d_step {
		room && deletions > 0 && current[c] & seen[0] && OPERATOR_MAY(c) ->
		observe;
		deletions--;
		lowest(current[c] & seen[0]);
		printf("operator deletes node %d of client %d\n", low, c);
		after = seen[0] & ~bit(low);
		commitQuietly()
	   }
#ifdef WALK
	:: d_step {
		up[c] && nempty(replies[c]) && empty(inbox[c]) && !finished[c] ->
		observe;
		drains = (isRead(c) -> c : NONE);
		replies[c]?m, n;
		inbox[c]!m, n;
		printf("client %d receives %e %d\n", c, m, n);
		m = 0;
		n = 0
	   }
	:: d_step {
		!up[c] && !dials[c] && !finished[c] && !late[c] ->
		observe;
		dials[c] = true;
		printf("client %d may connect\n", c)
	   }
	:: d_step {
		(holders & bit(c)) && !wish[c] && RELEASING(c) ->
		observe;
		wish[c] = LEAVE;
		printf("client %d must release\n", c)
	   }
#ifdef TURNS
	:: d_step {
		up[c] && (holders & bit(c)) && !wish[c] && TURNS(c) ->
		observe;
		wish[c] = TURN;
		printf("client %d must turn\n", c)
	   }
#endif
	:: d_step {
		!(holders & bit(c)) && !wish[c] && !finished[c] && (IMPATIENT & bit(c)) && !(busy & bit(c)) ->
		observe;
		wish[c] = LEAVE;
		printf("client %d must give up\n", c)
	   }
#endif
	od
}

#if defined(WALK) && defined(QUEUES)
/* Drain has a client of several queues receive the other answers to its reads: the order in which the code has
 * sent the reads of different queues is not known. */
proctype Drain()
{
	mtype m;
	Set n;
	byte c;

end:	do
	:: d_step {
		drains != NONE && empty(inbox[drains]) ->
		c = drains;
		if
		:: isRead(c) -> replies[c]?m, n; inbox[c]!m, n
		:: else -> drains = NONE
		fi
	   }
	od
}
#endif

#ifdef FOLLOWER
/* Follower applies the transactions of the leader, in their order. */
proctype Follower()
{
	byte c;

end:	do
	:: d_step {
		nempty(stream) ->
		stream?after, version[1], c, tm, low;
		printf("follower applies: nodes %d\n", after);
		hit = 0;
		apply(1, after);
		if
		:: c != NONE -> replies[c]!tm(low); waiting[c] = false
		:: else
		fi;
		c = 0
	   }
	od
}
#endif

#ifdef RESTORE
/* Restore restores the servers from a backup of the start. They refuse all clients, so all sessions end. */
proctype Restore()
{
	d_step {
		next > 0 ->
		k = 0;
		do
		:: k < CLIENTS ->
			if
			:: !finished[k] -> lose(k)
			:: else
			fi;
			former[k] = 0;
			current[k] = 0;
			k++
		:: else -> break
		od;
		seen[0] = 0;
		next = 0
	}
}
#endif
