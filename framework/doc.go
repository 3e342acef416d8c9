// Package framework is a managed connection to ZooKeeper: a [Client] that keeps a session, replaces it when it is lost, tells what
// happens to it, and repeats operations where that is safe. Curator: CuratorFramework.
//
//	client, err := framework.New("zk1:2181,zk2:2181,[::1]:2181/app", framework.WithLogger(logger))
//	if err != nil {
//		return err // names what is wrong with the connection string or an option
//	}
//	defer client.Close()
//	if err := client.WaitConnected(ctx); err != nil {
//		return err // tells what went wrong with each server
//	}
//	data, stat, err := client.Get(ctx, "/config")
//
// # Sessions
//
// What is ephemeral belongs to a session. A [Session] is one of them, and the operations bound to it: once it is over they fail with
// [ErrSessionLost] and are never repeated in the next one. It is over when the servers say so, when they offer another one instead,
// and when nothing was heard of their leader for two thirds of the timeout: then they may be about to give what it held to somebody
// else. [Session.Err] finds that out by the clock, whatever the sockets say. [Client.Listen] tells of changes of [State].
//
// [WithLossDeadline] sets another part of the timeout, and [WithLossPolicy] what a suspended connection means for holds. A
// server that dies or falls silent is replaced by another, with the same session; [Client.SetServers] replaces all of them. A
// credential that is refused, at whatever time, is the state [AuthFailed], and operations fail with [ErrAuthFailed] until it is
// accepted.
//
// # Outcomes
//
// Every failed operation was not applied, or its outcome is unknown: [OutcomeOf] tells. What was not applied for want of a connection
// is repeated by the retry policy. What may have been applied is repeated only if that cannot do harm: reads; writes and deletions
// with a version; creates that are [Protected], which are looked for first; transactions with one of these. Operations of the client
// are repeated in the next session too, but for creates of ephemeral nodes.
//
// Everything that waits takes a context, and fails when that ends, also when no server can be reached. An operation whose caller has
// left may still be applied; a protected node that is created in that way is deleted in the background. Without a deadline,
// operations end with [ErrNotConnected] when the retry policy is exhausted.
//
// # Watching it at work
//
// [WithLogger] takes a zap logger. [WithMetrics] takes an adapter to a metrics library; the module contrib/otel is the one for
// OpenTelemetry. [WithWaitWarning] sets after how long a wait for a lock is worth a warning. docs/observability.md has the details.
//
// # Errors
//
// ZooKeeper's own errors (zk.ErrNoNode and so on) and those of this package match with errors.Is; [Error] has the operation and the
// path.
package framework
