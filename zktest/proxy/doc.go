// Package proxy is a TCP proxy that understands ZooKeeper's frames. It stands between a client and any server, real or not,
// counts what the client asks for, and makes the network fail on purpose.
//
//	p := proxy.Start(t, serverAddr)
//	conn, _, err := zk.Connect([]string{p.Addr()}, 10*time.Second)
//
//	// The node is created, and the client never learns.
//	rule := p.On(proxy.Match{Op: proxy.OpCreate, Path: "/locks/"}, proxy.DropAfter())
//	_, err = conn.Create("/locks/a", nil, 0, acl) // connection closed
//	err = rule.Wait(ctx)
//
//	p.ResetCounts()
//	// ...
//	fmt.Println(p.Requests().Total(), "requests") // pings left out
//
// Rules act on single requests. [Proxy.Blackhole], [Proxy.Refuse] and [Proxy.DropConnections] act on all connections.
//
// # Order
//
// TCP keeps the order of what one connection carries, and so does the proxy: a request that is delayed or held delays
// everything behind it on its connection, pings included, so a session may expire over it. Nothing is reordered, doubled
// or changed. Other connections go on.
//
// # Limits
//
// Only requests can be matched, not replies or watch events. Frames over 64 MiB, four-letter words and TLS are passed on
// as plain bytes: no rule sees them. One proxy stands for one server; an ensemble needs one for each member.
package proxy
