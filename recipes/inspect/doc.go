// Package inspect shows the locks, elections and other objects of recipes below a path: what each is,
// which session holds it and since when, and which sessions wait in which order. It is for operators
// and their tools. It knows objects by their nodes, those of docent, Curator, kazoo and
// go-zookeeper/zk, so it needs neither the programs nor their options.
//
//	for object, err := range inspect.Walk(ctx, client, "/locks") {
//		if object == nil {
//			return err // the walk has ended before it was complete
//		}
//		if err != nil {
//			log.Println(err) // one node may not be read, say
//			continue
//		}
//		fmt.Println(object.Path, object.Kind, object.State, object.Holders, object.Waiters)
//	}
//
// [Walk] looks at a tree, [Show] at one path. [Session] finds what one session holds and waits for.
// [Cycles] finds sessions that wait for each other. They only read: they enter no queue, create no
// node and set no watch. [Break] deletes a node of a queue. [recipes.Revoke] asks its holder
// instead, with [Node.Participant].
//
// All types have tags for JSON. Ids of sessions and tokens are hexadecimal text there.
//
// # How objects are recognized
//
// The first line of the table that fits a node decides. The numbers that servers append to names
// have ten digits.
//
//	kind            the node                                                          sure
//	rwlock          children end in __READ__, __WRIT__ or __rlock__ and a number      if all names are known
//	mutex           children end in lock- or __lock__ and a number                    if all names are known
//	latch           children end in latch- and a number                               if all names are known
//	semaphore       a child leases has children that end in lease- and a number       if all names are known
//	semaphore       children leases and locks; leases is empty                        if there are waiters
//	striped         a child programs has children with -stripes-, and numbers         yes
//	condition       ephemeral children that end in wait- and a number                 yes
//	cyclic-barrier  the data is {"parties":...,"generation":...,"passed":...}         yes
//	count-down      the data is {"count":...}, perhaps with "open"                    if counts are there
//	count, atomic   ephemeral children that end in marker- and a number, and          yes
//	                four or eight bytes that are not text
//	value           the same, and other data                                          yes
//	semaphore       kazoo's: a decimal number as data, and ephemeral children         no
//	                named by 32 hexadecimal digits
//	service         a child is JSON with the name of the node as its name             yes
//	double-barrier  ephemeral children named by UUIDs, and perhaps a child ready      with ready
//	double-barrier  one child, ready                                                  no
//	group           all children are ephemeral                                        kazoo's Party
//	term-record     the name ends in -term, the data is {"token":...,"resigned":...}  yes
//	count           four bytes that are not text, no children                         no
//	atomic          eight bytes that are not text, no children                        no
//	count           kazoo's: a decimal number as data, no children                    no
//	barrier         an IP address as data, never any children                         no
//	empty           no data and no children, but there were some (WithAll)            no
//	unknown         everything else (WithAll)                                         no
//
// A name is known if it begins as those of docent and Curator (_c_, a UUID, a hyphen), of
// go-zookeeper/zk (_c_, 32 hexadecimal digits, a hyphen) or of kazoo (32 hexadecimal digits). Where no
// name is known, a queue is one only if a node of it is ephemeral.
//
// # What nodes do not show
//
//   - A leader.Election, Curator's LeaderSelector and kazoo's Election have the nodes of a mutex, and
//     are shown as one. So is a lock of kazoo's WriteLock while there is no reader.
//   - A lock that is free is a node without children, or no node at all: the servers delete the
//     containers. It is KindEmpty, as is any other node whose children are deleted.
//   - A multi-lock is a mutex for each of its paths, and so is a striped lock for each stripe.
//   - The holder may have ended its hold by its own clock, or not have noticed that it holds. A holder
//     whose process crashed is shown until its session expires.
//   - The waiters of kazoo's semaphore are the mutex beside it, whose name ends in -__lock__.
//   - An empty node may be kazoo's barrier. A node with a number may be anything.
//
// # Consistency
//
// The nodes of one object were there together at some time, unless [Object.Torn]: the children are
// listed and read, and the number of changes of the directory is compared, up to three times. Data
// may be later than that time. Different objects are read at different times: see [Confirm]. A server
// can be behind the ZooKeeper leader, so an object can be older than what other clients have seen.
//
// # Times
//
// The times of nodes are those of the ZooKeeper leader's clock, and [Object.At] that of the local one.
// [Object.Age] is wrong by the difference. See [WithClockOffset].
//
// # Requests
//
// A walk reads up to 128 nodes in one request, one request at a time. 100,000 locks with a holder
// each, and a waiter for one in ten, take 3,900 requests. Servers before 3.6 do not know such
// requests. There each node is one request, with 16 under way, which takes several times as long.
package inspect
