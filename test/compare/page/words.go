package page

import "github.com/docent-zk/docent/test/compare/safety"

// words are the words of a language in tables.
type words struct {
	text      map[string]string
	faults    map[safety.Fault]string
	verdicts  map[safety.Verdict]string
	about     map[string]string // each kind of lock
	head      []string
	speedHead []string
}

var languages = map[string]words{"en": english, "zh": chinese}

var english = words{
	text: map[string]string{
		"lock": "lock", "yes": "yes", "stuck": "stuck", "never": "never", "kept": "after its release",
		"given up": "after it gave up", "reason": "reason",
	},
	faults: map[safety.Fault]string{
		safety.Pause: "pause", safety.PauseLate: "pause after the look", safety.Overrun: "long work",
		safety.Kill: "kill -9", safety.KillAcquire: "kill -9 in acquire", safety.Partition: "partition",
		safety.WaiterDies: "a waiter dies", safety.ClockAhead: "clock of a program", safety.Restart: "restart",
		safety.Wipe: "restart without disk", safety.Failover: "failover", safety.ServerClock: "clock of the server",
		safety.Delete: "deletion",
	},
	verdicts: map[safety.Verdict]string{safety.May: "may", safety.Never: "never", safety.Must: "must"},
	about: map[string]string{
		"docent":   "`mutex.Mutex` of docent, on ZooKeeper. In the service: `Hold.Guard`.",
		"curator":  "`InterProcessMutex` of Curator, in Java. A suspended connection counts as a loss.",
		"kazoo":    "`Lock` of kazoo, in Python. A suspended connection counts as a loss.",
		"zk.Lock":  "`zk.Lock` of the Go driver. The state of the session is all that it tells.",
		"zk-node":  "Built by hand: one ephemeral node, which all waiters watch.",
		"zk-queue": "Built by hand: sequential nodes; the end of the node before its own is taken for the lock.",
		"etcdlock": "`contrib/etcdlock` of docent. In the service: `Client.Cmp`.",
		"concurrency": "`concurrency.Mutex` of etcd's client. Token: the revision of its header. In the service: " +
			"`IsOwner`.",
		"redislock": "`contrib/redislock` of docent, on one server with `appendfsync always`.",
		"redsync":   "redsync on one server, not extended. The look is `Until`.",
		"bsm":       "bsm/redislock, not refreshed. The look is `TTL`, a request. A waiter tries every 100 ms.",
		"setnx-getset": "Built by hand: SETNX with the time of expiry as the value, GETSET when that is over, DEL. A " +
			"waiter tries every 10 ms.",
		"setnx-expire": "Built by hand: SETNX, then EXPIRE, then DEL. A waiter tries every 10 ms.",
		"redislock-5": "`NewRedlock` of `contrib/redislock` on five masters, of which two could not be reached in " +
			"the same\nrows as below.",
		"redlock": "redsync on five masters. In the rows where a master restarts without its disk, or its clock is " +
			"set,\ntwo others could not be reached as the lock was acquired.",
		"sqllock-pg": "`contrib/sqllock` of docent on PostgreSQL: a lease in a row. In the service: `Lock.Guard`.",
		"sqltx-pg": "`Lock.InTx` of `contrib/sqllock` on PostgreSQL: the lock is the transaction's, which also " +
			"writes in the service.",
		"session-pg": "`SessionLock` of `contrib/sqllock` on PostgreSQL: the lock of a connection, which the " +
			"server ends\nwhen it is silent for a lease.",
		"keylock-pg": "`KeyLock` of `contrib/sqllock` on PostgreSQL: a row that is inserted and deleted, with a time " +
			"of expiry.",
		"session-maria": "`SessionLock` of `contrib/sqllock` on MariaDB: the lock of a connection, which the " +
			"server ends\nwhen it is silent for a lease.",
		"advisory-pg":   "Built by hand: `pg_advisory_lock` of a connection.",
		"sqllock-maria": "`contrib/sqllock` of docent on MariaDB: a lease in a row. In the service: `Lock.Guard`.",
		"sqltx-maria": "`Lock.InTx` of `contrib/sqllock` on MariaDB: the lock is the transaction's, which also " +
			"writes in the service.",
		"getlock-maria": "Built by hand: `GET_LOCK` of a connection.",
	},
	head: []string{"fault", "lost updates (theory)", "with the token", "in the service", "two holders", "free again",
		"later holder refused"},
	speedHead: []string{"lock", "one program, per s", "p50", "p99", "16 programs, per s", "fairness", "hand-over",
		"1,000 locks", "requests", "15 waiters, requests per s", "requests of a wake-up", "1,000 held, requests per s"},
}

var chinese = words{
	text: map[string]string{
		"lock": "锁", "yes": "是", "stuck": "卡死", "never": "一直未释放", "kept": "持有者释放后", "given up": "持有者放弃后",
		"reason": "原因",
	},
	faults: map[safety.Fault]string{
		safety.Pause: "暂停", safety.PauseLate: "检查之后暂停", safety.Overrun: "工作超时", safety.Kill: "kill -9",
		safety.KillAcquire: "加锁途中 kill -9", safety.Partition: "网络分区", safety.WaiterDies: "等待者死亡",
		safety.ClockAhead: "程序的时钟", safety.Restart: "重启", safety.Wipe: "丢盘重启", safety.Failover: "故障切换",
		safety.ServerClock: "服务器的时钟", safety.Delete: "误删",
	},
	verdicts: map[safety.Verdict]string{safety.May: "可能", safety.Never: "绝不", safety.Must: "必然"},
	about: map[string]string{
		"docent":        "docent 的 `mutex.Mutex`，基于 ZooKeeper。服务内写入：`Hold.Guard`。",
		"curator":       "Curator 的 `InterProcessMutex`，Java。连接挂起按丢锁处理。",
		"kazoo":         "kazoo 的 `Lock`，Python。连接挂起按丢锁处理。",
		"zk.Lock":       "Go 驱动自带的 `zk.Lock`，只能看会话状态。",
		"zk-node":       "手写：一个临时节点，所有等待者都监视它（惊群）。",
		"zk-queue":      "手写：顺序节点；前一个节点消失就当作得锁，不再检查。",
		"etcdlock":      "docent 的 `contrib/etcdlock`。服务内写入：`Client.Cmp`。",
		"concurrency":   "etcd 客户端的 `concurrency.Mutex`。令牌：Header 的 revision。服务内写入：`IsOwner`。",
		"redislock":     "docent 的 `contrib/redislock`，单机 Redis，`appendfsync always`。",
		"redsync":       "redsync，单机，不续期。检查用 `Until`。",
		"bsm":           "bsm/redislock，不续期。检查用 `TTL`（一次请求）。等待者每 100 毫秒试一次。",
		"setnx-getset":  "手写：SETNX，值为过期时间；过期后 GETSET；DEL 释放。等待者每 10 毫秒试一次。",
		"setnx-expire":  "手写：先 SETNX，再 EXPIRE；DEL 释放。等待者每 10 毫秒试一次。",
		"redislock-5":   "`contrib/redislock` 的 `NewRedlock`，五台主库；有两台连不上的行与下面相同。",
		"redlock":       "redsync，五台主库。某台丢盘重启或时钟跳变的两行里，加锁时另有两台连不上。",
		"sqllock-pg":    "docent 的 `contrib/sqllock`，PostgreSQL，租约存于一行。服务内写入：`Lock.Guard`。",
		"sqltx-pg":      "`contrib/sqllock` 的 `Lock.InTx`，PostgreSQL，锁属于事务。服务内写入：同一事务。",
		"session-pg":    "`contrib/sqllock` 的 `SessionLock`，PostgreSQL，连接锁；连接静默超过租约，服务器就断开它。",
		"keylock-pg":    "`contrib/sqllock` 的 `KeyLock`，PostgreSQL，唯一键的一行，带过期时间。",
		"session-maria": "`contrib/sqllock` 的 `SessionLock`，MariaDB，连接锁；连接静默超过租约，服务器就断开它。",
		"advisory-pg":   "手写：一个连接上的 `pg_advisory_lock`。",
		"sqllock-maria": "docent 的 `contrib/sqllock`，MariaDB，租约存于一行。服务内写入：`Lock.Guard`。",
		"sqltx-maria":   "`contrib/sqllock` 的 `Lock.InTx`，MariaDB，锁属于事务。服务内写入：同一事务。",
		"getlock-maria": "手写：一个连接上的 `GET_LOCK`。",
	},
	head: []string{"故障", "丢失更新（理论）", "带令牌", "服务内写入", "双持有", "多久可再用", "后来者被拒"},
	speedHead: []string{"锁", "单程序，次/秒", "p50", "p99", "16 个程序，次/秒", "公平度", "交接", "1000 把锁", "每次请求数",
		"15 个等待者，请求/秒", "一次唤醒的请求", "持有 1000 把，请求/秒"},
}
