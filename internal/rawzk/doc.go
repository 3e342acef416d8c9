// Package rawzk speaks ZooKeeper's protocol byte by byte, for tests that check a server from
// outside.
//
// It shares no code with any server or client of this module, so that an error in one is not
// repeated in the other. It adds no checks of its own: it sends any bytes, malformed or not, and
// returns frames unchanged.
//
//	conn, err := rawzk.Dial(addr)
//	err = conn.SendFrame(rawzk.Connect{Timeout: 4000, Password: make([]byte, 16)}.Encode())
//	frame, err := conn.ReadFrame(10 * time.Second)
//	resp, err := rawzk.DecodeConnected(frame)
//	err = conn.Send(1, rawzk.GetData("/", false))
//
// A request is an [Op]: its code and its body. For a request without a constructor, make an Op with
// a body that [Join] makes from [Int], [Long], [Str] and the like.
package rawzk
