// Package redislock has locks on Redis with holds of docent: each has a deadline, a fencing token and a
// context that ends when the lock is lost.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	client, err := redislock.NewClient(rdb)
//	...
//	defer client.Close()
//	lock, err := redislock.New(client, "orders")
//	...
//	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, hold.Token(), orders) // ctx ends when the lock is lost
//	})
//
// A [Lock] is a [recipes.Locker], as docent's locks on ZooKeeper are: a program can hold both as one
// (package multilock), or move from one to the other.
//
// # Kinds of locks
//
//	New                      one holder at a time; any waiter is next
//	New with WithFairQueue   one holder at a time; waiters are served in the order of their arrival
//	NewReadWrite             many readers or one writer; readers do not starve a writer
//	NewSemaphore             as many holders as there are permits
//	NewRedlock               one holder at a time, on several independent servers; no token
//
// All but the semaphore re-enter: an acquire with the context of a hold ([recipes.Hold.Context]) of the
// same Client and lock shares that hold, and the last release releases it.
//
// # How it works
//
// The lock "orders" is the key docent:orders. Its value is the holder's own, and its time to live is
// that of [WithTTL]. One script sets the key and increases the counter {docent:orders}:token, which
// is the fencing token and stays. The key is renewed after each third of its time to live, in the
// background, as long as it is the holder's. A release deletes it, if it is the holder's, and
// publishes that in the channel {docent:orders}:released. It also notes the holder in
// {docent:orders}:done for the time to live, a minute at most. So a release that the client of Redis
// sends again is known, and an acquire that arrives after the release has no effect.
//
// A read-write lock and a semaphore have a sorted set at that key: the holders by the time at which
// they expire, by the clock of the server. Each holder renews its own. The scripts remove those that have
// expired. Waiting writers are in {docent:orders}:waiting, and keep new readers waiting until they
// acquire the lock, give up, or have not asked for the time to live. {docent:orders}:permits has the
// number of permits while there are holders. A fair lock has its waiters in {docent:orders}:queue, and
// until when each of them is there in {docent:orders}:alive.
//
// A hold ends, unless it is renewed, after nine tenths of the time to live, reckoned from before the
// request was sent. So it ends before Redis gives the lock to another client, also when the holder is
// cut off.
//
// Waiters ask when a release is published, when the key of the holder would expire, and at intervals
// ([WithPollInterval]). The goroutines that wait for one lock by one Client queue: only the first one
// asks. But all clients ask at a release, and any of them acquires the lock: there is no order, and
// an acquire that comes just then may be ahead of all. With [WithFairQueue] each goroutine waits in
// Redis, a release tells the first one alone, and nothing passes it. For locks that many clients want at
// once use docent's locks on ZooKeeper.
//
// # What it promises
//
// At most one hold of a lock is valid at a time, one writer or only readers, or as many as there are
// permits, as long as one server has the keys and its clock runs evenly. Redis does not promise more. In
// each row where two clients may hold the lock, only the resource can tell them apart: see package
// fence. Where the token does not help either, use a service that agrees by a majority, such as
// ZooKeeper or etcd. The table is for all kinds on one server: "two holders" are also a reader beside a
// writer, and more holders than permits.
//
//	what happens                         two holders?                     the token
//	the holder is paused                 no: its hold has ended at the    a late write after the pause
//	                                     next question                    needs it
//	a holder or its network fails        no: the lock is free after the   grows
//	                                     time to live
//	a waiter or its network fails        no: in a fair queue, and as a    grows
//	                                     writer, it delays others for
//	                                     the time to live
//	this machine's clock is set          no: a hold may end early         grows
//	the server's clock is set forward    yes, if by more than a tenth of  grows
//	                                     the time to live
//	the server's clock is set back       no: the lock of a holder that    grows
//	                                     crashed is kept for longer
//	restart, appendfsync always          no                               grows
//	restart, other persistence           yes: what was not on the disk    may repeat
//	                                     is lost, of a second with
//	                                     appendfsync everysec, of minutes
//	                                     with snapshots
//	restart without a disk, FLUSHALL     yes, until the holder renews     begins again at 1
//	failover to a replica                yes: replication does not wait   may repeat
//	a partition with two masters         yes, until the old one is        may repeat
//	                                     written to no more
//	eviction, maxmemory-policy           yes: only the counter stays      grows
//	volatile-*
//	eviction, maxmemory-policy           yes                              may begin again at 1
//	allkeys-*
//
// The order of a fair queue is lost with its keys: in the rows where the token may repeat or begin again.
// Tokens of readers and of permits order them by their acquires. A resource that refuses smaller tokens
// refuses a reader or a permit that is still valid, if a later one was there before it. So compare the
// tokens of writers and of locks with one holder.
//
// A Redlock has other rows, and no token in any of them:
//
//	the holder is paused                 no, but a late write after the pause is not refused by anything
//	a holder or its network fails        no: the lock is free after the time to live
//	less than half of the servers fail   no: holds and acquires go on
//	more servers fail                    no: holds end at their deadline, and none begins
//	a server restarts with its keys      no
//	a server restarts without its keys   yes, unless it stays away for the time to live
//	clocks of some servers are set       yes, if these and the servers that the holder did not reach are
//	forward                              a majority
//	a server fails over to a replica     yes: it may have lost its keys
//	a partition                          no: only one side has a majority
//
// A holder whose key was lost learns that when it renews the key, after a third of the time to live
// at the latest. The hold ends then, with the reason. After a failover or a restart a resource that
// compares tokens may refuse the new holder because it has seen a larger token: set the counter to
// more than that.
//
// # Other Redis locks
//
// With the prefix "" the key is the name of the lock. Then the lock of New, fair or not, excludes others
// that set the same key by SET with NX and delete only a value of their own, such as those of redsync and
// bsm/redislock. A fleet can move from them program by program. They neither count tokens nor publish
// releases, so waiters poll, and tokens order only the holders of this package. A lock of Redisson is a
// hash: Acquire fails with WRONGTYPE while it is held, as it does for another kind of lock of the same
// name.
//
// # What it needs
//
// A server that runs scripts of Redis 5 or later, and must not evict the keys: its maxmemory-policy is
// noeviction, the default. The tests run on Redis 7.0 and on miniredis. The user needs the commands
// EVAL, EVALSHA, TIME, GET, SET, INCR, DEL, EXISTS, PEXPIRE, PTTL, ZADD, ZCARD, ZRANGE, ZREM,
// ZREMRANGEBYSCORE, ZREVRANGE, ZSCORE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE and PING for the keys and
// channels of the locks. The counters stay, so the names of locks should be of a limited number.
// Programs with another client than go-redis implement [Redis] and call [NewClientOf].
package redislock
