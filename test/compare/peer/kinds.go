package peer

// Kinds are all kinds of locks under comparison. Locks of one service are beside each other.
var Kinds = []Kind{
	{Name: "docent", Service: ZooKeeper, Token: true, Guard: true, start: docent},
	{Name: "curator", Service: ZooKeeper, Command: "java"},
	{Name: "kazoo", Service: ZooKeeper, Command: "python"},
	{Name: "zk.Lock", Service: ZooKeeper, start: driver(driverLock)},
	{Name: "zk-node", Service: ZooKeeper, Own: true, start: driver(ephemeralNode)},
	{Name: "zk-queue", Service: ZooKeeper, Own: true, start: driver(naiveQueue)},

	{Name: "etcdlock", Service: Etcd, Token: true, Guard: true, start: docentOnEtcd},
	{Name: "concurrency", Service: Etcd, Token: true, Guard: true, start: concurrencyMutex},

	{Name: "redislock", Service: Redis, Token: true, start: docentOnRedis},
	{Name: "redsync", Service: Redis, Fixed: true, start: redsyncMutex},
	{Name: "bsm", Service: Redis, Fixed: true, start: bsmLock},
	{Name: "setnx-getset", Service: Redis, Fixed: true, Clock: true, Own: true, start: setnxGetset},
	{Name: "setnx-expire", Service: Redis, Fixed: true, Own: true, start: setnxExpire},

	{Name: "redislock-5", Service: Masters, start: docentRedlock},
	{Name: "redlock", Service: Masters, Fixed: true, start: redsyncMutex},

	{Name: "sqllock-pg", Service: PostgreSQL, Token: true, Guard: true, start: docentOnSQL(postgreSQL)},
	{Name: "sqltx-pg", Service: PostgreSQL, Token: true, Guard: true, start: transaction(postgreSQL)},
	{Name: "session-pg", Service: PostgreSQL, start: docentLock(postgreSQL, sessionOf)},
	{Name: "keylock-pg", Service: PostgreSQL, start: docentLock(postgreSQL, keyOf)},
	{Name: "advisory-pg", Service: PostgreSQL, Own: true, start: connectionLock(postgreSQL)},

	{Name: "sqllock-maria", Service: MariaDB, Token: true, Guard: true, start: docentOnSQL(mariaDB)},
	{Name: "sqltx-maria", Service: MariaDB, Token: true, Guard: true, start: transaction(mariaDB)},
	{Name: "session-maria", Service: MariaDB, start: docentLock(mariaDB, sessionOf)},
	{Name: "getlock-maria", Service: MariaDB, Own: true, start: connectionLock(mariaDB)},
}
