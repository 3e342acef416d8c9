// Package differential runs the same scripts on the real ZooKeeper server and on zktest and compares every answer.
//
// A scenario is a function that drives one server over raw connections; the harness runs it on both servers at once and
// requires equal transcripts. It holds no expectation of its own: the real server is right.
//
//	func TestData(t *testing.T) {
//		compare(t, group{scenarios: []scenario{emptyIsNotNull, ...}})
//	}
//
//	func emptyIsNotNull(s *script) {
//		a := s.connect("a") // a connection with a session of its own
//		a.do(rawzk.Create(s.path("x"), []byte{}, rawzk.Open(), rawzk.Persistent))
//		a.do(rawzk.GetData(s.path("x"), false))
//	}
//
// All scenarios of a group share one configuration and one pair of servers, one after the other (concurrent: all at
// once, and then zxids say little). Each has a node of its own, /<name of the function>, which is there when it starts;
// script.path is below it. Sessions that it leaves are closed behind it, so that none expires during the next one.
//
// # What a transcript holds
//
// Requests as text, and each frame that came back, decoded field by field; bytes that no field explains follow in hex. So
// equal lines mean equal bytes, but for what no two servers share:
//
//   - zxids count from the start of the scenario ("+3"); earlier ones are "old", and −1 and 0 are themselves
//   - session ids and passwords are labels in the order of their appearance (s1, p1)
//   - times are relations (now, mtime=ctime), and the time of one zxid must stay the same
//   - child lists, getEphemerals and whoAmI are sorted; script.sortACLs sorts ACLs too; whoAmI calls
//     the address of the connection "own address"
//   - the reply to auth and sasl may overtake others and is shown where it belongs
//   - FIN and reset are both "ended"
//
// Nothing is awaited by sleeping: client.do awaits a reply, client.barrier all events that are due, client.end the end of
// the connection. What did not come in time is a line like any other.
//
// A test that compares while it goes on makes the parts itself: startPair for the servers, newScript and script.prepare for
// each, script.take after each step for the lines that it gave, script.finish at the end.
//
// # Switches
//
// The suite needs the real server and runs if ZOOKEEPER=1; else it is skipped, and says so.
//
// DIFFERENTIAL=real compares two real servers, which shows what is left to chance in a scenario; DIFFERENTIAL=fake two of
// zktest; DIFFERENTIAL=memory connects to zktest in memory instead of over TCP. DIFFERENTIAL_SHOW=1 logs the transcripts.
package differential
