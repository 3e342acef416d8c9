// Package proxy provides a TCP proxy that understands ZooKeeper's frames. It stands between a
// client and any server, real or not, counts the client's requests, and makes the network fail on
// purpose.
//
//	p := proxy.Start(t, serverAddr)
//	conn, _, err := zk.Connect([]string{p.Addr()}, 10*time.Second)
//
//	// The node is created, and the client never learns.
//	rule := p.On(fault.Match{Op: fault.OpCreate, Path: "/locks/"}, fault.DropAfter())
//	_, err = conn.Create("/locks/a", nil, 0, acl) // connection closed
//	err = rule.Wait(ctx)
//
//	p.ResetCounts()
//	// ...
//	fmt.Println(p.Requests().Total(), "requests") // without pings
//
// Rules, of package zktest/fault, act on single requests. [Proxy.Blackhole], [Proxy.Refuse] and
// [Proxy.DropConnections] act on all connections.
//
// # Order
//
// Like TCP, the proxy keeps the order of each connection. A delayed or held request delays
// everything behind it on its connection, pings included, so the session may expire. Nothing is
// reordered, doubled or changed. Other connections are not affected.
//
// # Limits
//
// Only requests can be matched, not replies or watch events. Frames over 64 MiB, four-letter words
// and TLS are passed on as plain bytes, without rules. One proxy serves one server; an ensemble
// needs one for each member.
package proxy
