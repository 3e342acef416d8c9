// Package rwlock is a fair, reentrant read-write lock between processes on ZooKeeper: Curator's InterProcessReadWriteLock, on the same
// nodes, so that Go and Java processes exclude each other on one path.
//
//	rw, err := rwlock.New(client, "/locks/catalogue")
//	if err != nil {
//		return err
//	}
//	hold, err := rw.Read().Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { err = errors.Join(err, hold.Release()) }()
//	return catalogue.Load(hold.Context(ctx))
//
// # Guarantees
//
// Those of package recipes, of one writer or any number of readers. First come, first served: a reader waits for the nearest writer ahead
// and a writer for everybody ahead, so that a stream of readers does not keep a writer waiting beyond those who came before it, nor
// a stream of writers a reader. Tokens order writers among themselves, and readers against writers, but for
// those of TryUpgrade, see there.
//
// # Both sides
//
// Reading under the context of a write hold is let in at once, beside the write hold, and is how a writer becomes a reader:
//
//	written, err := rw.Write().Acquire(ctx)
//	...
//	reading, err := rw.Read().Acquire(written.Context(ctx))
//	...
//	err = written.Release() // other readers come in; writers wait
//	use(reading.Context(ctx))
//
// Writing under the context of only a read hold is ErrUpgrade at once, where Curator waits for ever; TryUpgrade succeeds for the only
// reader.
//
// # Requests
//
// Each side is a create and a list right behind it, in one round trip, and one request to release. Who has to wait takes two watched reads
// more, and another list when the last one ahead has gone; a reader saves that where the writer was first in line, so that the
// readers behind a writer come in by its event alone. Read under write is one transaction.
//
// # Nodes
//
// <path>/_c_<uuid>-__READ__<sequence> and <path>/_c_<uuid>-__WRIT__<sequence>, ephemeral and sequential, with the host's IP address as
// data, unless WithData or WithIdentity says otherwise. A hold beside another one has a node that is not sequential, with the number of
// the other's. Path is written with each acquire, nothing over nothing; where it has data, or its ACL forbids that, it is not written,
// and an acquire takes two requests.
package rwlock
