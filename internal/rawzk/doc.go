// Package rawzk speaks ZooKeeper's wire protocol byte by byte, for tests that look at a server from outside.
//
// It shares no code with any server or client of this module, so that a mistake in one is not repeated in the other.
// It keeps no promises for its user: it sends whatever it is told, malformed or not, and hands out frames as they came.
//
//	conn, err := rawzk.Dial(addr)
//	err = conn.SendFrame(rawzk.Connect{Timeout: 4000, Password: make([]byte, 16)}.Encode())
//	frame, err := conn.ReadFrame(10 * time.Second)
//	resp, err := rawzk.DecodeConnected(frame)
//	err = conn.Send(1, rawzk.GetData("/", false))
//
// A request is an [Op]: its code and its body. What the constructors cannot say, an Op made by hand says, with a body put
// together from [Int], [Long], [Str] and the like by [Join].
package rawzk
