// Package framework manages the connection of a program to ZooKeeper. Its [Client] keeps a session, opens
// another one when it is lost, reports changes of its state, and repeats operations where that is safe.
// Curator: CuratorFramework.
//
//	client, err := framework.New("zk1:2181,zk2:2181,[::1]:2181/app", framework.WithLogger(logger))
//	if err != nil {
//		return err // names the wrong part of the connection string, or the wrong option
//	}
//	defer client.Close()
//	if err := client.WaitConnected(ctx); err != nil {
//		return err // has the last error of each server
//	}
//	data, stat, err := client.Get(ctx, "/config")
//
// # Sessions
//
// Ephemeral nodes belong to a session. A [Session] is one session, with the operations bound to it.
// When it has ended they fail with [ErrSessionLost]; they are never repeated in the next session. A
// session ends when the servers say so, or when they offer another one instead. It also ends when
// the client has not heard from the ZooKeeper leader for two thirds of the timeout: then the
// servers may soon give its locks to another client. [Session.Err] finds that out from the clock,
// whatever the state of the connection. [Client.Listen] reports changes of [State].
//
// [WithLossDeadline] sets another part of the timeout, and [WithLossPolicy] sets what a suspended
// connection means for holds. If a server crashes or stops answering, the client connects to
// another one with the same session. [Client.SetServers] replaces all servers. If the servers
// refuse a credential, at any time, the state is [AuthFailed], and operations fail with
// [ErrAuthFailed] until they accept it.
//
// # Watches
//
// [Client.AddWatch] calls a function for each event of a node or a tree, and tells when events may
// have been missed. GetW, ExistsW and ChildrenW return a [Watch], which fires once.
//
// # Outcomes
//
// The outcome of a failed operation is "not applied" or "unknown"; [OutcomeOf] returns it. An
// operation that was not applied for want of a connection is repeated by the retry policy. An
// operation that may have been applied is repeated only if that is safe: a read; a write or
// deletion with a version; a [Protected] create, after a search for its node; a transaction that
// contains such a write, deletion or create. An operation of a client is also repeated in the next
// session, unless it creates an ephemeral node.
//
// Every call that waits takes a context, and fails when the context ends, even if no server can be
// reached. After that the operation may still be applied; a protected node that is then created is
// deleted in the background. Without a deadline, operations end with [ErrNotConnected] when the
// retry policy is exhausted.
//
// # Nil and zero values
//
// These rules hold in all packages of the library:
//
//   - A constructor, and a function that takes a client or a lock, returns an error for a nil
//     argument, which names it.
//   - A method called on a nil pointer panics, as in the standard library.
//   - The zero value of a type that has a constructor never panics. Its methods that return an
//     error fail with [ErrZeroValue]. The others return the zero value of their result or, where
//     that would wait for ever, one that has ended: a closed channel, an ended context, [Closed].
//   - A nil context is [ErrNilContext]. Where no error can be returned, it panics, as with
//     [context.WithCancel].
//   - A nil function is an error before anything is done. Where no error can be returned, it
//     panics.
//
// # Logs and metrics
//
// [WithLogger] takes a zap logger, [WithSlog] one of log/slog. [WithMetrics] takes an adapter to a
// metrics library: the modules contrib/prometheus and contrib/otel have one each. [WithWaitWarning]
// sets after how long a wait for a lock is logged as a warning. docs/observability.md has the
// details.
//
// # Errors
//
// Errors of ZooKeeper (zk.ErrNoNode and so on) and those of this package match with errors.Is.
// [Error] has the operation and the path. The documentation of package recipes has a table of all
// errors of the library, with what to do.
package framework
