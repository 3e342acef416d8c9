// Package cache keeps a subtree of ZooKeeper, or one node, or the children of one, in memory and
// current. It corresponds to Curator's CuratorCache, and takes the place of its NodeCache,
// PathChildrenCache and TreeCache.
//
//	c, err := cache.New(client, "/services/billing", cache.WithDepth(1))
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	stop := c.Listen(func(e cache.Event) { log.Println(e) })
//	defer stop()
//	if err := c.WaitReady(ctx); err != nil {
//		return err
//	}
//	for path, node := range c.All() {
//		fmt.Println(path, string(node.Data))
//	}
//
// # What is in the cache
//
// The cache holds the nodes at and below a path. A program that only wants the node itself uses
// [WithDepth](0); for its children, too, WithDepth(1). [WithFilter] leaves out subtrees, and
// [WithoutData] leaves out the data. The path need not exist.
//
// A [Node] is a value that does not change: a change of a node in ZooKeeper puts another Node in
// its place. What a program reads may be older than the state of the servers. It is never older
// than what the program has read from the cache before, except after [Stale].
//
// # Events
//
// A listener is called with each difference between one content of the cache and the next:
// [Added], [Changed], [Removed]. A program that applies them to an empty map has the content of
// the cache. Several changes of a node in quick succession may be one difference. A node that is
// deleted and created again between two reads is [Removed], then [Added]. A parent is created
// before its children, and deleted after them.
//
// [Ready] follows when the cache has read everything, and each time when it is current again
// after a loss of the connection. [Stale] says that the connection was lost, and that the cache
// keeps what it had then.
//
// # Requests
//
// On ZooKeeper 3.6 and later the cache sets one persistent recursive watch. A change costs one
// read. At the start, and after a reconnect, up to 64 reads share a request, and at most 128 reads
// are under way. After a reconnect the cache checks each node that it holds. It reads lists of
// children, and data of more than 1 KiB, only where they have changed. On older servers the cache
// sets two watches at each node, and each read is a request.
//
// A cache of 100,000 nodes with 10 bytes of data takes about 45 MB of memory, or 180 MB where it
// sets two watches at each node.
package cache
