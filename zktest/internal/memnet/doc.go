// Package memnet provides connections in memory that behave like TCP, for a server and its clients
// in one process.
//
//	client, server := memnet.Pipe(clientAddr, serverAddr, nil, nil)
//
// It starts no goroutines, and waits only for channels and timers that it makes for one wait. So it
// works inside a testing/synctest bubble: a blocked Read lets the bubble's clock advance, and
// deadlines and arrivals follow that clock.
//
// # Like TCP
//
// The model is TCP on Linux, errors included:
//
//   - Close ends the stream behind the data: the peer reads all of it, then io.EOF. CloseWrite does
//     the same for one direction only.
//   - Close with arrived data unread resets the connection instead, and so does [Conn.Reset]. The
//     peer still reads what arrived before the reset, then gets ECONNRESET once. After that Read
//     returns io.EOF and Write EPIPE.
//   - A Write to a closed peer succeeds. The peer answers with a reset, and Writes fail with EPIPE
//     when it arrives. Read still returns io.EOF, because the end of the stream came before the
//     reset.
//   - Read joins what has arrived; the boundaries of Writes do not matter.
//   - Errors are of type *net.OpError, as those of package net.
//
// # Unlike TCP
//
// Buffers have no bounds, so Write never blocks, and a write deadline matters only if it has passed
// when Write is called. There are no acknowledgements, so nothing is ever retransmitted or given
// up: a silent peer stays silent forever. If a deadline and an arrival fall on the same instant,
// the deadline wins, so that there is one outcome.
package memnet
