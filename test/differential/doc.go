// Package differential runs the same scripts on the real ZooKeeper server and on zktest and
// compares every answer.
//
// A scenario is a function that drives one server over raw connections. The harness runs it on both
// servers at once and requires equal transcripts. Scenarios have no expectations of their own: the
// real server is right.
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
// All scenarios of a group share one configuration and one pair of servers, one after the other. A
// concurrent group runs them all at once and does not compare zxids. Each scenario has a node of
// its own, /<name of the function>, which exists when it starts; script.path is below it. Sessions
// that a scenario leaves open are closed afterwards, so that none expires during the next one.
//
// # What a transcript has
//
// A transcript has the requests as text, and each received frame, decoded field by field. Bytes
// that belong to no field follow in hex. So equal lines mean equal bytes, except for what differs
// between any two servers:
//
// - zxids count from the start of the scenario ("+3"); earlier ones are "old", and −1 and 0 stay
// the same - session ids and passwords are labels in the order of their appearance (s1, p1) - times
// are relations (now, mtime=ctime), and the time of one zxid must stay the same - child lists,
// getEphemerals and whoAmI are sorted; script.sortACLs sorts ACLs too; whoAmI calls
//
//	the address of the connection "own address"
//
// - the reply to auth and sasl may overtake others and is shown in its order - FIN and reset are
// both "ended"
//
// No scenario sleeps in place of a condition: client.do waits for a reply, client.barrier for all
// due events, client.end for the end of the connection. An answer that does not arrive in time is a
// line of its own.
//
// A test that compares step by step creates the parts itself: startPair for the servers, newScript
// and script.prepare for each, script.take after each step for its lines, script.finish at the end.
//
// # Switches
//
// The suite needs the real server and runs if ZOOKEEPER=1. Otherwise it is skipped with a message.
//
// DIFFERENTIAL=real compares two real servers, which shows what is random in a scenario;
// DIFFERENTIAL=fake compares two of zktest; DIFFERENTIAL=memory connects to zktest in memory
// instead of over TCP. DIFFERENTIAL_SHOW=1 logs the transcripts.
package differential
